# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random JSON schemas that have a valid value, for test_grammar.py.

Each uses keywords that the grammars follow, in the ways that JSON Schema gives
them a meaning: what must be refused is tested by its message elsewhere.
"""

PATTERNS = (
    r"^[a-z]{2,8}$",
    r"^\d{3}-\d{4}$",
    r"^(red|green|blue)+$",
    r"^[A-Z][a-z]* [A-Z]\.$",
    r"^[^\"\\]{0,5}$",
)
FORMATS = ("date", "time", "date-time", "uuid", "email", "ipv4", "hostname", "uri", "duration")
NAMES = ("name", "id", "größe", "a b", "x-1", "tags", "value", "Überschrift", "n", "quote\"d", "back\\slash")
VALUES = (None, True, False, 0, -7, 3.5, 1e30, "", "text", "ü\n\"\\", [1, "a"], {"k": [None]}, {})


def string(random):
    kind = random.randrange(5)
    if kind == 0:
        return {"type": "string", "pattern": random.choice(PATTERNS)}
    if kind == 1:
        return {"type": "string", "format": random.choice(FORMATS)}
    least = random.randrange(4)
    schema = {"type": "string"}
    if kind >= 3:
        schema["minLength"] = least
    if kind == 4:
        schema["maxLength"] = least + random.randrange(12)
    return schema


def bounds(random, number):
    """Lower and upper bounds with a value between them."""
    schema = {}
    low = number(-1000, 1000)
    high = low + random.choice((2, 17, 1e3, 123456))
    if random.random() < 0.6:
        schema[random.choice(("minimum", "exclusiveMinimum"))] = low
    if random.random() < 0.6:
        schema[random.choice(("maximum", "exclusiveMaximum"))] = high
    return schema


def integer(random):
    if random.random() < 0.2:
        return {"type": "integer", "multipleOf": random.choice((2, 5, 12))}
    schema = bounds(random, random.randint)
    return {"type": "integer", **{key: int(value) for key, value in schema.items()}}


def real(random):
    return {"type": "number", **bounds(random, lambda low, high: round(random.uniform(low, high), random.randrange(4)))}


def array(random, depth):
    schema = {"type": "array"}
    if random.random() < 0.2:
        schema["prefixItems"] = [any_schema(random, depth - 1) for _ in range(random.randint(1, 3))]
        schema["items"] = random.choice((False, {"type": "integer"}))
        return schema
    schema["items"] = any_schema(random, depth - 1)
    least = random.randrange(3)
    if random.random() < 0.5:
        schema["minItems"] = least
    if random.random() < 0.7:
        schema["maxItems"] = least + random.randrange(4)
    return schema


def record(random, depth):
    names = random.sample(NAMES, random.randint(0, 5))
    schema = {"type": "object", "properties": {name: any_schema(random, depth - 1) for name in names}}
    if names and random.random() < 0.8:
        schema["required"] = random.sample(names, random.randint(1, len(names)))
    extra = random.random()
    if extra < 0.4:
        schema["additionalProperties"] = False
    elif extra < 0.5:
        schema["additionalProperties"] = True
    elif extra < 0.6:
        schema["additionalProperties"] = {"type": "boolean"}
    elif extra < 0.65:
        schema = {"type": "object", "patternProperties": {"^[a-z]{1,4}$": any_schema(random, 0)}}
        schema["additionalProperties"] = False
    elif extra < 0.7:
        schema = {"type": "object", "propertyNames": {"pattern": "^k[0-9]$"}, "additionalProperties": {"type": "null"}}
        schema["minProperties"] = random.randrange(2)
        schema["maxProperties"] = 3
    if random.random() < 0.3:
        schema["description"] = "What a model is told."
    return schema


def any_schema(random, depth):
    leaf = (
        string,
        integer,
        real,
        lambda random: {"type": "boolean"},
        lambda random: {"type": "null"},
        lambda random: {"enum": random.sample(VALUES, random.randint(1, 4))},
        lambda random: {"const": random.choice(VALUES)},
        lambda random: {"type": random.sample(("string", "integer", "null", "boolean"), 2)},
    )
    if depth <= 0 or random.random() < 0.3:
        return random.choice(leaf)(random)
    kind = random.random()
    if kind < 0.35:
        return array(random, depth)
    if kind < 0.75:
        return record(random, depth)
    if kind < 0.9:
        return {"anyOf": [any_schema(random, depth - 1) for _ in range(random.randint(1, 3))]}
    return {"$ref": "#/$defs/" + random.choice(("first", "second"))}


def root_schema(random):
    """A schema of an object or array, three levels deep."""
    schema = random.choice((array, record, record))(random, 3)
    schema["$defs"] = {
        "first": record(random, 1),
        # A list of itself, which may be empty.
        "second": {
            "type": "object",
            "properties": {"next": {"anyOf": [{"$ref": "#/$defs/second"}, {"type": "null"}]}},
            "required": ["next"],
        },
    }
    return schema
