// Written by scripts/generate_docs.py: the numbers that are options of a request.
const OPTIONS = {
  max_tokens: {"min": -1, "step": 1, "hint": "most tokens to generate; -1: until the context is full"},
  temperature: {"min": 0, "step": "any", "hint": "temperature that the logits are divided by; 0: always the most probable token"},
  top_k: {"min": -1, "step": 1, "hint": "sample from the K most probable tokens; 0 or -1: from all"},
  top_p: {"above": 0, "max": 1, "step": "any", "hint": "sample from the fewest most probable tokens whose probabilities reach this sum; 1: from all"},
  min_p: {"min": 0, "max": 1, "step": "any", "hint": "sample from the tokens with at least this share of the largest probability"},
  repetition_penalty: {"min": 0.01, "max": 100, "step": "any", "hint": "divide positive logits of tokens in the prompt and the answer by X, and multiply negative ones by it"},
  frequency_penalty: {"min": -2, "max": 2, "step": "any", "hint": "subtract X from a token's logit for each time that the token is in the answer"},
  presence_penalty: {"min": -2, "max": 2, "step": "any", "hint": "subtract X from the logit of each token that is in the answer"},
  min_tokens: {"min": 0, "step": 1, "hint": "tokens to generate before a stop id may be chosen"},
  logprobs: {"min": -1, "max": 1024, "step": 1, "hint": "report each token's log probability and rank, and the N most probable tokens; -1: nothing"},
  seed: {"step": 1, "hint": "seed of the sampler, of 64 bits; -1 is 2^64 - 1"},
  n: {"min": 1, "max": 1024, "step": 1, "hint": "number of answers; answer i has the seed plus i"},
  speculative: {"min": -2, "max": 16, "step": 1, "hint": "most tokens that a step verifies of a draft, which a draft model makes or what followed the same text before; 0: none; -1: as many as pay; -2: as many as pay with a draft model, else none"},
  priority: {"step": 1, "hint": "priority; requests with a higher one go first"},
  time_limit: {"min": 0, "step": "any", "hint": "seconds after which the answer is cut off; 0: no limit"},
};
