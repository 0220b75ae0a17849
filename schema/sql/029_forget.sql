-- Before 030, where rows were there before: forgets what an earlier load found over the whole table.
DELETE FROM request_blobs WHERE NOT EXISTS (SELECT 1 FROM request_facts f WHERE f.id = request_blobs.id);
DELETE FROM losses WHERE loss IN ('partial_request', 'token_mismatch', 'client_clock_skew');
UPDATE request_facts SET losses = NULL, start_class = NULL, zeros_left_out = NULL, concurrent = NULL
WHERE COALESCE(losses, start_class, zeros_left_out, concurrent) IS NOT NULL;
