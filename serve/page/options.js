// Written by scripts/generate_docs.py: the numbers that are options of a request.
const OPTIONS = {
  max_tokens: {"min": -1, "step": 1, "hint": "tokens to generate at most; -1: as many as the context holds"},
  temperature: {"min": 0, "step": "any", "hint": "temperature that divides the logits; 0 takes the argmax"},
  top_k: {"min": -1, "step": 1, "hint": "samples from the K most probable tokens; 0 or -1: from all"},
  top_p: {"min": 0, "max": 1, "step": "any", "hint": "samples from the fewest most probable tokens whose probabilities reach this sum; 1: from all"},
  min_p: {"min": 0, "max": 1, "step": "any", "hint": "samples from the tokens of at least this share of the largest probability"},
  repetition_penalty: {"min": 0.01, "max": 100, "step": "any", "hint": "divides positive logits of the tokens of prompt and answer, and multiplies others"},
  frequency_penalty: {"min": -2, "max": 2, "step": "any", "hint": "number taken off the logit of a token for each time it is in the answer"},
  presence_penalty: {"min": -2, "max": 2, "step": "any", "hint": "number taken off the logits of the tokens of the answer"},
  min_tokens: {"min": 0, "step": 1, "hint": "tokens before which no stop id is chosen"},
  logprobs: {"min": -1, "max": 1024, "step": 1, "hint": "reports each token's log probability and rank, and so many of the most likely ones; -1: nothing"},
  seed: {"step": 1, "hint": "seed of the samples, of 64 bits: -1 is the seed 2^64 - 1"},
  n: {"min": 1, "max": 1024, "step": 1, "hint": "answers; number i has the seed plus i"},
  priority: {"step": 1, "hint": "requests of higher ones go first"},
  time_limit: {"min": 0, "step": "any", "hint": "seconds after which answers end as they are; 0: none"},
};
