SELECT a.choice, a.arrival, a.t_ns / 1000000 AS t_ms, a.tokens, a.events, r.grade, r.series, r.token_events, r.tpot_ns, r.ttft_server_ns
FROM arrivals a JOIN requests r ON r.request = a.request WHERE a.request = 1 ORDER BY a.choice, a.arrival
