/* Built without librdmacm: there is no RDMA. */
#include "transport.h"

const struct rdma *const rdma = NULL;
