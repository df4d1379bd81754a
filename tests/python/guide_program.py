"""Runs the scripts of docs/guide/pytorch.md as the guide says: guide_program.py GUIDE.

All of them solve the same problem, so all must print a loss near zero, and once.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

scripts = re.findall(r"^```python\n(.*?)^```$", pathlib.Path(sys.argv[1]).read_text(), re.DOTALL | re.MULTILINE)
assert len(scripts) == 3, len(scripts)
with tempfile.TemporaryDirectory() as folder:
    for number, script in enumerate(scripts):
        path = pathlib.Path(folder, f"train{number}.py")
        path.write_text(script)
        launcher = ["ddlrun", "-np", "2", "--oversubscribe", "--no-tag-output"] if number > 0 else []
        run = subprocess.run([*launcher, sys.executable, path], stdout=subprocess.PIPE, text=True, check=True)
        losses = re.findall(r"^loss (.*)$", run.stdout, re.MULTILINE)
        print(f"script {number}: {losses}")
        assert len(losses) == 1 and float(losses[0]) < 1e-6, run.stdout
    lines = [set(script.splitlines()) for script in scripts]
    for number in (1, 2):  # every line that differs is marked
        unmarked = [line for line in scripts[number].splitlines() if "# new" not in line and line not in lines[0]]
        assert [line for line in unmarked if line.strip() != 'print("loss", loss.item())'] == [], unmarked
