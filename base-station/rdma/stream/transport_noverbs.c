/* Built without librdmacm: there is no RDMA. */
#include "transport_verbs.h"

const struct rdma *const rdma = NULL;
