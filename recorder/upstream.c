/* Names are looked up by libuv's threads, never by the loop; one look-up serves all who wait. */
#include "recorder/upstream.h"
#include "recorder/clocks.h"

static void on_found(uv_getaddrinfo_t *request, int status, struct addrinfo *found) {
    struct upstream *u = request->data;
    u->resolving = false;
    u->resolved_ns = clocks_mono();
    if (status == 0) {
        u->list = (struct addr_list){0};
        addr_take(&u->list, found, u->addr.port);
    }
    uv_freeaddrinfo(found);
    while (u->waiting) { /* none comes back to wait: the look-up is less than a second old */
        struct upstream_wait *w = u->waiting;
        u->waiting = w->next;
        w->done(w->ctx);
    }
}

bool upstream_again(struct upstream *u, struct upstream_wait *w, int64_t now_ns) {
    if (!addr_is_name(&u->addr)) return false;
    if (!u->resolving) {
        if (now_ns - u->resolved_ns < NS_PER_S) return false;
        struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
        u->request.data = u;
        if (uv_getaddrinfo(u->loop, &u->request, on_found, u->addr.host, NULL, &hints) != 0) return false;
        u->resolving = true;
    }
    w->next = u->waiting;
    u->waiting = w;
    return true;
}

void upstream_forget(struct upstream *u, struct upstream_wait *w) {
    for (struct upstream_wait **at = &u->waiting; *at; at = &(*at)->next) {
        if (*at != w) continue;
        *at = w->next;
        return;
    }
}

/* Resets more than a few seconds apart belong to different failures. */
void upstream_cut(struct upstream *u, int64_t now_ns) {
    if (!u->down && now_ns - u->cut_ns > 2 * NS_PER_S) u->n_cut = 0;
    u->n_cut++;
    u->cut_ns = now_ns;
}
