"""Validates the JSON of a report against its published schema, which has to know every field that is there.

    check_schema.py SCHEMA FILE

Exit status: 0, valid; 1, not, with what is wrong; 77, there is no jsonschema.
"""
import json
import sys

try:
    import jsonschema
except ImportError:
    sys.exit(77)


def close(schema):
    """No fields but those that the schema names. --report-bindings alone adds an object that it leaves open."""
    if isinstance(schema, dict):
        if "properties" in schema:
            schema["additionalProperties"] = False
        for part in schema.values():
            close(part)
    elif isinstance(schema, list):
        for part in schema:
            close(part)


with open(sys.argv[1], encoding="utf-8") as file:
    published = json.load(file)
with open(sys.argv[2], encoding="utf-8") as file:
    record = json.load(file)
close(published)
validator = jsonschema.Draft202012Validator(published)
validator.check_schema(published)
errors = [f"{list(error.absolute_path)}: {error.message}" for error in validator.iter_errors(record)]
print("\n".join(errors), end="")
sys.exit(1 if errors else 0)
