SELECT a.arrival, a.t_ns, a.tokens, a.backpressured AS slow, g.gap_ns, r.backpressured, r.tpot_ns, s.to_ns - s.from_ns AS paused_ns
FROM arrivals a JOIN requests r ON r.request = a.request LEFT JOIN gaps g ON g.arrival = a.arrival JOIN spans s ORDER BY a.arrival
