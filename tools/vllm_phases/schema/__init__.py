"""One source for every value: schemas/*.yaml become values.schema.json, values.yaml and docs/values.md."""
