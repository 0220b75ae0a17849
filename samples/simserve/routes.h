/* Which request gets which answer. It does not know how a generation proceeds. */
#ifndef SAMPLES_SIMSERVE_ROUTES_H
#define SAMPLES_SIMSERVE_ROUTES_H

#include "samples/simserve/server.h"

/* For struct conn_ops; arg is the struct server. */
void routes_on_request(struct conn *c, const struct http_in *req, void *arg);

#endif
