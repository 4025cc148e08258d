"""Writes a text file as a C string: embed.py INPUT OUTPUT NAME."""
import sys

source, target, name = sys.argv[1:4]
with open(source, encoding="utf-8") as f:
    lines = f.read().splitlines()
with open(target, "w", encoding="utf-8") as f:
    f.write(f"/* Made from {source.rsplit('/', 1)[-1]}; do not edit. */\n")
    f.write(f"static const char {name}[] =\n")
    for line in lines:
        escaped = line.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t")
        f.write(f'\t"{escaped}\\n"\n')
    f.write("\t;\n")
