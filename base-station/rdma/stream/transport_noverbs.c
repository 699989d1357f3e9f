/* Build without librdmacm: no RDMA. */
#include "transport.h"

const struct rdma *const rdma = NULL;
