SELECT request, generation, outcome, output_tokens, arrivals, itl_absent, tpot_ns, tail_ns, e2e_client_ns, concurrent, losses,
  (SELECT l.from_wall_ns FROM losses l WHERE l.request = requests.request) AS lost_from
FROM requests ORDER BY request
