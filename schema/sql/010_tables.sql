-- The tables of a database made from traces. Times ending in _ns are nanoseconds on the recorder's monotonic clock,
-- _wall_ns nanoseconds since the epoch, UTC. (recording, request) is the key of a request in every table.
-- Each column's sentence stands behind it and is what `traceanalyze definitions --columns` prints.
-- A line FACTS R or FACTS C stands for one column per fact of that subject in facts.def; the loader puts them there.

-- TABLE traces: one row for each file that was read
CREATE TABLE traces (
  trace INTEGER PRIMARY KEY,      -- ordinal of the file in the order it was read
  file TEXT NOT NULL,             -- the file's name as given
  recording TEXT NOT NULL,        -- UUID of the recording, the same in all its parts
  part INTEGER NOT NULL,          -- ordinal of the part within the recording, from 0
  state TEXT NOT NULL,            -- sealed, growing, unsealed, torn or damaged
  format INTEGER NOT NULL,        -- version of the file format
  blocks INTEGER NOT NULL,        -- whole blocks read
  file_bytes INTEGER NOT NULL,    -- size of the file
  damaged_bytes INTEGER NOT NULL, -- bytes that could not be read as blocks
  missing_blocks INTEGER NOT NULL,-- blocks whose sequence numbers never came
  first_ns INTEGER,               -- earliest time in the part
  last_ns INTEGER,                -- latest time in the part
  started_wall_ns INTEGER,        -- the same instant as first_ns on the wall clock
  ended_wall_ns INTEGER,          -- the same instant as last_ns on the wall clock
  recorder TEXT,                  -- name of the recorder: --name, else its host
  source TEXT,                    -- what was recorded: proxy to ADDRESS
  version TEXT                    -- version of the program that recorded
);
CREATE UNIQUE INDEX traces_by_part ON traces (recording, part);

-- TABLE request_facts: one row a request: its facts as logged and what the loader counts from its events
CREATE TABLE request_facts (
  id INTEGER PRIMARY KEY,         -- row number; no meaning beyond this database
  recording TEXT NOT NULL,        -- UUID of the recording
  request INTEGER NOT NULL,       -- ordinal of the request in its recording, by arrival
  recorder TEXT,                  -- name of the recorder that saw it
  arrived_wall_ns INTEGER,        -- t_arrive on the wall clock, by the anchor nearest before it
  ended INTEGER NOT NULL,         -- 1: its end is in the trace
  lost INTEGER NOT NULL,          -- 1: pieces of it were lost by the recorder
  t_lost_ns INTEGER,              -- from when on they were lost
  t_connect_ns INTEGER,           -- the client's connection was accepted (first request of a connection only)
  upstream_connect_ns INTEGER,    -- time to connect to the upstream, a part of forward_lag (first request of a connection only)
  token_source TEXT,              -- where the tokens of its events come from: token_ids, running_usage, engine_event, logprobs, prorated, events
  grade TEXT,                     -- exact, prorated or events: how well tokens are placed in time
  output_tokens INTEGER,          -- output tokens: the server's total, else the sum over its events
  hidden_tokens INTEGER,          -- of them: in no event (unseen reasoning, rejected prediction)
  token_events INTEGER,           -- events that bear tokens
  arrivals INTEGER,               -- arrivals: reads that completed such events, those of 1 ms taken together, per choice
  series INTEGER,                 -- choices that have arrivals
  tokens_seen INTEGER,            -- sum of the tokens of all arrivals
  tokens_first INTEGER,           -- of them: in the first arrival of each choice
  series_tokens INTEGER,          -- tokens of the arrivals after the first of each choice, backpressured ones left out
  series_arrivals INTEGER,        -- arrivals after the first of each choice, backpressured ones left out
  series_span_ns INTEGER,         -- sum of the gaps before these arrivals
  gap_max_ns INTEGER,             -- largest of these gaps
  t_first_token_ns INTEGER,       -- first token-bearing event, or reasoning summary
  t_first_answer_ns INTEGER,      -- first event with answer text or a tool call
  t_last_token_ns INTEGER,        -- last arrival
  backpressured INTEGER,          -- gaps, the end included, that overlap a pause of reading made for a slow client
  buffered INTEGER NOT NULL,      -- 1: a stream of at least 16 tokens that came in one arrival
  itl_absent TEXT,                -- why gaps between tokens are not known: not_streamed, no_arrivals, lost, buffered, summary_only; absent: they are
  token_mismatch INTEGER,         -- the server's total less the exact sum of its events, where they differ
  concurrent INTEGER,             -- other generations of the same upstream in flight at t_arrive, as seen by this recorder
  start_class TEXT,               -- cold or warmup where a start of the engine or a load of the model says so
  zeros_left_out INTEGER,         -- 1: this upstream, model and route tells cached tokens only when there are some
  losses TEXT,                    -- names of the losses that overlap it, comma between
  /* FACTS R */
  arrivals_base_ns INTEGER        -- what times in arrivals_blob count from: t_forwarded, else t_arrive
);
CREATE UNIQUE INDEX request_facts_by_key ON request_facts (request, recording);

-- TABLE request_blobs: the arrivals of the requests that have some, apart from their rows, which are then quick to read
CREATE TABLE request_blobs (
  id INTEGER PRIMARY KEY,         -- id of the request's row in request_facts
  arrivals_blob BLOB NOT NULL     -- its arrivals, delta-coded; read them through the table `arrivals`
);

-- TABLE connections: one row a client connection: its facts as logged
CREATE TABLE connections (
  id INTEGER PRIMARY KEY,         -- row number; no meaning beyond this database
  recording TEXT NOT NULL,        -- UUID of the recording
  connection INTEGER NOT NULL,    -- ordinal of the connection in its recording
  recorder TEXT,                  -- name of the recorder that saw it
  ended INTEGER NOT NULL,         -- 1: its end is in the trace
  /* FACTS C */
  requests INTEGER                -- requests seen on it
);
CREATE UNIQUE INDEX connections_by_key ON connections (recording, connection);

-- TABLE spans: everything the log says with a beginning and an end
CREATE TABLE spans (
  recording TEXT NOT NULL,        -- UUID of the recording
  subject TEXT NOT NULL,          -- request, connection or recording
  id INTEGER NOT NULL,            -- ordinal of the request or connection; 0 for the recording
  name TEXT NOT NULL,             -- paused, c_paused, late_read, loop_stall, marker, upstream_down
  from_ns INTEGER NOT NULL,       -- its beginning
  to_ns INTEGER NOT NULL,         -- its end
  value INTEGER                   -- the number that belongs to it, as facts.def says
);

-- TABLE losses: everything missing or odd, said by the recorder or found while loading
CREATE TABLE losses (
  recording TEXT NOT NULL,        -- UUID of the recording
  loss TEXT NOT NULL,             -- its name in losses.def
  severity TEXT NOT NULL,         -- loss: figures leave something out; odd: counted; note: worth knowing
  side TEXT NOT NULL,             -- recording: said by the recorder; loading: found by the analyzer
  from_ns INTEGER,                -- its beginning
  to_ns INTEGER,                  -- its end
  from_wall_ns INTEGER,           -- its beginning on the wall clock
  to_wall_ns INTEGER,             -- its end on the wall clock
  count INTEGER,                  -- how many pieces, events or requests
  bytes INTEGER,                  -- how many bytes, where known
  request INTEGER,                -- the request it concerns; absent: the whole recording
  file TEXT,                      -- the file it was found in
  meaning TEXT NOT NULL,          -- what it means
  remedy TEXT NOT NULL            -- what to do about it
);

-- TABLE samples: figures of engines and machines over time, when they were sampled
CREATE TABLE samples (
  recording TEXT NOT NULL,        -- UUID of the recording
  t_ns INTEGER NOT NULL,          -- when it was sampled
  wall_ns INTEGER,                -- the same instant on the wall clock
  source TEXT NOT NULL,           -- address or process it was read from
  name TEXT NOT NULL,             -- name of the series as the source has it
  labels TEXT,                    -- labels of the series as the source has them
  value REAL NOT NULL             -- the value
);

-- TABLE notes: --note KEY=VALUE of the recorder
CREATE TABLE notes (
  recording TEXT NOT NULL,        -- UUID of the recording
  part INTEGER NOT NULL,          -- the part whose head has it
  key TEXT NOT NULL,              -- its name
  value TEXT NOT NULL             -- what it says
);

-- TABLE heads: what else the head of a part says of the recorder and its machine
CREATE TABLE heads (
  recording TEXT NOT NULL,        -- UUID of the recording
  part INTEGER NOT NULL,          -- the part
  key TEXT NOT NULL,              -- name: host, kernel, boot_id, clock_source, ntp, command, listen.N, upstream.N ...
  value TEXT NOT NULL             -- what it says
);

-- TABLE anchors: pairs of the monotonic and the wall clock, read together
CREATE TABLE anchors (
  recording TEXT NOT NULL,        -- UUID of the recording
  mono_ns INTEGER NOT NULL,       -- the monotonic clock
  wall_ns INTEGER NOT NULL,       -- the wall clock
  uncertainty_ns INTEGER NOT NULL -- by how much the pair may be off
);
CREATE INDEX anchors_by_time ON anchors (recording, mono_ns);

-- TABLE recorder_facts: figures of the recording as a whole, the last ones told
CREATE TABLE recorder_facts (
  recording TEXT NOT NULL,        -- UUID of the recording
  name TEXT NOT NULL,             -- name of the fact in facts.def
  value INTEGER,                  -- its value, in the unit its name says
  PRIMARY KEY (recording, name)
);

-- TABLE recorder_times: distributions of the recorder's own times since the recording's start
CREATE TABLE recorder_times (
  recording TEXT NOT NULL,        -- UUID of the recording
  name TEXT NOT NULL,             -- late, delay_down, delay_up, loop or drain
  count INTEGER NOT NULL,         -- how many were measured
  sum_ns INTEGER NOT NULL,        -- their sum
  p50_ns INTEGER NOT NULL,        -- median, to 4.4 %
  p90_ns INTEGER NOT NULL,        -- 90th percentile, to 4.4 %
  p99_ns INTEGER NOT NULL,        -- 99th percentile, to 4.4 %
  max_ns INTEGER NOT NULL,        -- largest
  t_max_ns INTEGER NOT NULL,      -- when the largest was seen
  max_wall_ns INTEGER,            -- the same instant on the wall clock
  PRIMARY KEY (recording, name)
);

-- TABLE definitions: what every metric and every column means, from the same text as the SQL
CREATE TABLE definitions (
  name TEXT NOT NULL,             -- name of the metric or column
  kind TEXT NOT NULL,             -- metric or column
  object TEXT NOT NULL,           -- table or view that has it; of a metric without a column: report
  sentence TEXT,                  -- what it is
  starts TEXT,                    -- where a duration starts
  ends TEXT,                      -- where a duration ends
  formula TEXT,                   -- how it is computed
  unit TEXT,                      -- unit in output
  absent TEXT,                    -- what makes it absent
  grade TEXT,                     -- whether it is kept apart by grade
  peers TEXT,                     -- what other tools call by that name
  from_to TEXT                    -- the short form beside the figure in reports
);
CREATE INDEX definitions_by_object ON definitions (object, kind, name);
