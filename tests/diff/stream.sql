SELECT outcome, cache_class, token_source, grade, output_tokens, arrivals, tpot_ns, ttft_client_ns, ttft_server_ns, ttfa_server_ns,
  ttfb_server_ns, upload_ns, forward_lag_ns, upstream_connect_ns, tail_ns, delivery_lag_ns, e2e_client_ns, e2e_server_ns,
  upload_ns + forward_lag_ns + ttft_server_ns + (SELECT SUM(gap_ns) FROM gaps) + tail_ns - e2e_client_ns AS rest,
  ROUND(decode_tps, 3) AS decode_tps, ROUND(e2e_tps, 3) AS e2e_tps, ROUND(prefill_tps, 3) AS prefill_tps, hit_ratio, hit_band,
  (SELECT value FROM notes) AS note
FROM requests
