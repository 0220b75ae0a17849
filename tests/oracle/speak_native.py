"""Plans in the words of the other APIs: Anthropic, Gemini, Bedrock, and the engines' native routes."""
from plan import make
from speak_openai import Said

ANTHROPIC = {"stop": "end_turn", "length": "max_tokens", "tool": "tool_use", "filter": "refusal"}


def blocks(p):
    """(block number, step, opens a block) for APIs that speak in content blocks."""
    number, before = -1, None
    for s in p.steps:
        key = (s.kind, s.call) if s.kind == "tool" else s.kind
        opens = key != before or bool(s.name)
        number += opens; before = key
        yield number, s, opens


def anthropic(r):
    p, tiny = make(r, ("reasoning", "tool")), r.random() < 0.3
    said = Said("/v1/messages", {"model": "asked", "stream": True, "max_tokens": 64, "messages": [{"role": "user", "content": "hi"}]})
    write = r.choice([0, 0, 128])
    cached = min(p.cached or 0, p.prompt - 1)
    u = {"input_tokens": p.prompt} if tiny else {"input_tokens": p.prompt - cached, "cache_creation_input_tokens": write, "cache_read_input_tokens": cached}
    say = lambda kind, **more: said.say({"type": kind, **more}, kind)
    say("message_start", message={"id": "msg_1", "type": "message", "role": "assistant", "model": "sonata-5", "content": [], "stop_reason": None, "usage": {**u, "output_tokens": r.choice([0, 1, 3, 8])}})
    last = None
    for n, s, opens in blocks(p):
        if r.random() < 0.1 and not tiny: say("ping")
        if opens:
            if last is not None: say("content_block_stop", index=last)
            last = n
            say("content_block_start", index=n, content_block={"text": {"type": "text", "text": ""}, "reasoning": {"type": "thinking", "thinking": "", "signature": ""}, "tool": {"type": "tool_use", "id": "t1", "name": s.name, "input": {}}}[s.kind])
            if s.kind == "tool" and r.random() < 0.5: say("content_block_delta", index=n, delta={"type": "input_json_delta", "partial_json": ""})
        d = {"text": {"type": "text_delta", "text": s.text}, "reasoning": {"type": "thinking_delta", "thinking": s.text}, "tool": {"type": "input_json_delta", "partial_json": s.text}}[s.kind]
        if s.text: say("content_block_delta", index=n, delta=d)
        if s.kind == "reasoning" and r.random() < 0.1: say("content_block_delta", index=n, delta={"type": "signature_delta", "signature": "c3k="})
    if last is not None: say("content_block_stop", index=last)
    if r.random() < 0.1: say("vendor_extension", note="unknown types are ignored")
    if r.random() < 0.1: say("message_delta", delta={"stop_reason": None}, usage={"output_tokens": max(1, p.tokens() - 1)})
    say("message_delta", delta={"stop_reason": ANTHROPIC[p.reasons[0]], "stop_sequence": None}, usage={**(u if r.random() < 0.5 else {}), "output_tokens": p.tokens()})
    say("message_stop")
    return said


def gemini(r):
    p, sse = make(r, ("reasoning", "tool")), r.random() < 0.6
    said = Said("/v1beta/models/lumen-3:streamGenerateContent?" + ("alt=sse&key=k" if sse else "key=k"), {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}, kind="text/event-stream" if sse else "application/json")
    every, thoughts, out = r.random() < 0.75, 0, 0
    p.eos = [0]
    steps = [s for s in p.steps if s.kind != "tool" or s.name]
    for i, s in enumerate(steps):
        last = i == len(steps) - 1
        if s.kind == "reasoning": thoughts += s.tokens; part = {"text": s.text, "thought": True}
        else: out += s.tokens; part = {"functionCall": {"name": s.name, "args": {"a": 1, "b": ["é"]}}} if s.kind == "tool" else {"text": s.text}
        cand = {"content": {"parts": [part], "role": "model"}, "index": 0}
        if last: cand["finishReason"] = {"stop": "STOP", "length": "MAX_TOKENS", "tool": "STOP", "filter": "SAFETY"}[p.reasons[0]]
        u = {"promptTokenCount": p.prompt, **({"cachedContentTokenCount": p.cached} if p.cached else {}), **({"thoughtsTokenCount": thoughts} if thoughts else {}), **({"candidatesTokenCount": out} if out else {}), "totalTokenCount": p.prompt + out + thoughts}
        said.say({"candidates": [cand], **({"usageMetadata": u} if every or last else {}), "modelVersion": "lumen-3", "responseId": "r1"})
    if not steps: said.say({"candidates": [{"content": {"parts": [], "role": "model"}, "finishReason": "SAFETY", "index": 0}], "usageMetadata": {"promptTokenCount": p.prompt, "totalTokenCount": p.prompt}})
    return said


def bedrock(r):
    p = make(r, ("reasoning", "tool"))
    said = Said("/model/petrel-1/converse-stream", {"messages": [{"role": "user", "content": [{"text": "hi"}]}]}, kind="application/vnd.amazon.eventstream")
    said.say({"role": "assistant", "p": "abc"}, "messageStart")
    for n, s, opens in blocks(p):
        if opens and s.kind == "tool": said.say({"contentBlockIndex": n, "start": {"toolUse": {"toolUseId": "t1", "name": s.name}}}, "contentBlockStart")
        d = {"text": {"text": s.text}, "reasoning": {"reasoningContent": {"text": s.text}}, "tool": {"toolUse": {"input": s.text}}}[s.kind]
        if s.text: said.say({"contentBlockIndex": n, "delta": d, "p": "abcd"}, "contentBlockDelta")
    said.say({"contentBlockIndex": 0}, "contentBlockStop")
    said.say({"stopReason": {"stop": "end_turn", "length": "max_tokens", "tool": "tool_use", "filter": "content_filtered"}[p.reasons[0]]}, "messageStop")
    cached = min(p.cached or 0, p.prompt - 1)
    u = {"inputTokens": p.prompt - cached, "outputTokens": p.tokens(), "totalTokens": p.prompt + p.tokens()}
    if p.cached is not None: u.update(cacheReadInputTokens=cached, cacheWriteInputTokens=0)
    said.say({"usage": u, "metrics": {"latencyMs": 412}}, "metadata")
    return said


def reason_object(reason): return {"type": "length", "length": 8} if reason == "length" else {"type": "stop", "matched": 2}


def meta_of(r, p, c, count, last, lmdeploy):
    m = {"prompt_tokens": p.prompt, "completion_tokens": count, "finish_reason": reason_object(p.reasons[c]) if last else None}
    if lmdeploy: m.update(output_token_logprobs=None, routed_experts=None)
    else: m.update(id="e77b", weight_version="default", total_retractions=0, cached_tokens=p.cached or 0)
    if last and p.n == 1 and not lmdeploy and r.random() < 0.3:
        m.update(r.choice([{"spec_verify_ct": 3, "spec_num_correct_drafts": 3, "spec_num_proposed_drafts": 9}, {"spec_verify_ct": 5, "spec_accept_token_num": 4, "spec_draft_token_num": 15}]))
    return m


def meta_generate(r):
    """SGLang: texts cumulative or disjoint, ids likewise or absent, several choices by index; LMDeploy: one, always disjoint."""
    lmdeploy, mode = r.random() < 0.3, r.choice(["cumulative", "disjoint", "old_ids", "no_ids"])
    p = make(r, ("held",), 1 if lmdeploy else 2)
    said = Said("/generate", {"prompt": "hi", "stream": True, "max_tokens": 8} if lmdeploy else {"text": "hi", "stream": True, "sampling_params": {"max_new_tokens": 8, "n": p.n}}, done=True)
    text, ids = [""] * p.n, [[] for _ in range(p.n)]
    steps = [s for s in p.steps if s.tokens] or p.steps[:1]
    ends = {s.choice: i for i, s in enumerate(steps)}
    for i, s in enumerate(steps):
        c, last = s.choice, ends[s.choice] == i
        new = [r.randint(3, 9999) for _ in range(s.tokens)] + ([2] * p.eos[c] if last else [])
        text[c] += s.text; ids[c] = ids[c] + new
        obj = {"text": s.text if lmdeploy or mode == "disjoint" else text[c], "meta_info": meta_of(r, p, c, len(ids[c]), last, lmdeploy)}
        if p.n > 1: obj["index"] = c
        if lmdeploy or mode != "no_ids": obj["output_ids"] = ids[c] if mode == "cumulative" and not lmdeploy else new
        said.say(obj)
    return said


def tgi(r):
    p, details = make(r), r.random() < 0.5
    said = Said(r.choice(["/generate_stream", "/generate_stream", "/"]), {"inputs": "hi", "stream": True, "parameters": {"max_new_tokens": 8, "details": details}})
    steps, whole = [s for s in p.steps], ""
    if p.eos[0] or not steps: steps.append(None)
    for i, s in enumerate(steps):
        text = s.text if s else "</s>"
        if s: whole += text
        last = i == len(steps) - 1
        d = {"finish_reason": {"length": "length", "stop": "eos_token"}.get(p.reasons[0], "stop_sequence"), "generated_tokens": len(steps), "seed": None, "input_length": p.prompt} if details or r.random() < 0.3 else None
        said.say({"index": i + 1, "token": {"id": 300 + i, "text": text, "logprob": -r.random() * 9, "special": s is None}, "generated_text": whole if last else None, "details": d if last else None})
    return said


def triton(r):
    p = make(r)
    said = Said("/v2/models/ensemble/generate_stream", {"text_input": "hi", "max_tokens": 8})
    for s in p.steps: said.say({"cum_log_probs": r.choice([0.0, -r.random(), float("nan")]), "model_name": "ensemble", "model_version": "1", "sequence_end": False, "text_output": s.text})
    said.say({"model_name": "ensemble", "model_version": "1", "text_output": ""})
    return said


def ollama(r):
    chat = r.random() < 0.6
    p = make(r, ("reasoning", "tool") if chat else ("reasoning",))
    said = Said("/api/chat" if chat else "/api/generate", {"model": "asked", **({"messages": [{"role": "user", "content": "hi"}]} if chat else {"prompt": "hi"})}, kind="application/x-ndjson")
    b = {"model": "wren:3b", "created_at": "2026-09-21T10:00:00.037456Z"}
    for s in p.steps:
        if s.kind == "tool" and not s.name: continue
        if not chat: said.say({**b, "response": s.text if s.kind == "text" else "", **({"thinking": s.text} if s.kind == "reasoning" else {}), "done": False}); continue
        m = {"role": "assistant", "content": s.text if s.kind == "text" else ""}
        if s.kind == "reasoning": m["thinking"] = s.text
        if s.kind == "tool": m["tool_calls"] = [{"function": {"name": s.name, "arguments": {"city": "Brést"}}}]
        said.say({**b, "message": m, "done": False})
    end = {"done": True, "done_reason": "length" if p.reasons[0] == "length" else "stop", "total_duration": 412345678, "load_duration": 21000000}
    if p.tokens(): end.update(eval_count=p.tokens(), eval_duration=231000000)
    if p.prompt > 1: end["prompt_eval_count"] = p.prompt
    said.say({**b, **({"message": {"role": "assistant", "content": ""}} if chat else {"response": "", "context": list(range(r.choice([3, 400])))}), **end})
    return said


def llama_timings(p, count, spec):
    return {"cache_n": p.cached or 0, "prompt_n": p.prompt - (p.cached or 0), "prompt_ms": 92.0, "predicted_n": count, "predicted_ms": 9.75 * count, **({"draft_n": 10, "draft_n_accepted": 3} if spec else {})}


def llamacpp(r):
    p = make(r, ("held",), 2)
    said = Said(r.choice(["/completion", "/completions", "/infill"]), {"prompt": "hi", "n_predict": 64, "stream": True, **({"n": p.n} if p.n > 1 else {})})
    count, per_token, spec = [0] * p.n, r.random() < 0.3, r.random() < 0.3
    if r.random() < 0.2: said.say({"index": 0, "content": "", "tokens": [], "stop": False, "id_slot": -1, "tokens_predicted": 0, "tokens_evaluated": p.prompt, "prompt_progress": {"total": p.prompt, "cache": 0, "processed": 1, "time_ms": 3}})
    for s in p.steps:
        count[s.choice] += s.tokens
        if s.kind == "held" and r.random() < 0.5: continue
        more = {"timings": llama_timings(p, count[s.choice], spec)} if per_token else {}
        said.say({"index": s.choice, "content": s.text, "tokens": [5] * min(1, s.tokens), "stop": False, "id_slot": -1, "tokens_predicted": count[s.choice], "tokens_evaluated": p.prompt, **more})
    for c in range(p.n):
        count[c] += p.eos[c]
        said.say({"index": c, "content": "", "tokens": [], "id_slot": 0, "stop": True, "model": "plover", "tokens_predicted": count[c], "tokens_evaluated": p.prompt, "generation_settings": {"seed": 7, "n_predict": 64, "stream": True}, "prompt": "<s> hi \"data: \"",
                  "truncated": False, "stop_type": {"length": "limit", "stop": "eos"}.get(p.reasons[c], "word"), "stopping_word": "", "tokens_cached": p.prompt + count[c], "timings": llama_timings(p, count[c], spec)})
    return said


def lmstudio(r):
    p = make(r, ("reasoning",))
    said = Said("/api/v1/chat", {"model": "asked", "stream": True, "input": "hi"})
    say = lambda kind, **more: said.say({"type": kind, **more}, kind)
    say("chat.start", model_instance_id="acme/finch")
    if r.random() < 0.3: say("model_load.start"); say("model_load.progress", progress=0.5); say("model_load.end", load_time_seconds=3.25)
    say("prompt_processing.start"); say("prompt_processing.end")
    before = None
    for s in p.steps:
        kind = "reasoning" if s.kind == "reasoning" else "message"
        if kind != before: before and say(f"{before}.end"); say(f"{kind}.start"); before = kind
        say(f"{kind}.delta", content=s.text)
    if before: say(f"{before}.end")
    say("chat.end", result={"output": [], "stats": {"input_tokens": p.prompt, "total_output_tokens": p.tokens(), "reasoning_output_tokens": p.reasoning(), "tokens_per_second": 43.7, "time_to_first_token_seconds": 0.78}})
    return said
