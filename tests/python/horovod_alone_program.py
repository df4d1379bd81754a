"""The package horovod where no rank is: horovod.run(), the command horovodrun, and where the package cannot be used.

    horovod_alone_program.py FOLDER WHEELS GUIDE     FOLDER: has the package; WHEELS: the wheel of ddl-horovod
"""
import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from harness import raises, run

FOLDER, WHEELS, GUIDE = sys.argv[1:4]
sys.path.insert(0, FOLDER)


def output_of(*words, status=0, **environment):
    done = subprocess.run(words, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    assert done.returncode == status, f"{words}: {done.returncode}\n{done.stdout}"
    return done.stdout


def test_run():
    import horovod

    def work(first, second=0):
        import horovod.torch as hvd

        hvd.init()
        return hvd.rank(), first + second, os.path.dirname(os.path.dirname(hvd.__file__))

    results = horovod.run(work, args=(2,), kwargs={"second": 3}, np=2, use_gloo=True, disable_cache=True)
    assert [result[:2] for result in results] == [(0, 5), (1, 5)], results
    assert all(os.path.realpath(result[2]) == os.path.realpath(horovod.__path__[0]) for result in results), results
    # More ranks than CPUs are possible, as with Horovod.
    assert horovod.run(os.getpid, num_proc=os.cpu_count() + 1, hosts=None)
    with raises(NotImplementedError, "min_num_proc", "fixed number"):
        horovod.run(work, min_np=1)
    with raises(ValueError, "hosts and hostfile"):
        horovod.run(work, hosts="a:1", hostfile="b")
    with raises(RuntimeError, "ZeroDivisionError"):
        horovod.run(lambda: 1 // 0)


def test_command():
    import horovod

    with tempfile.TemporaryDirectory() as folder:
        output_of(sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps",
                  "--disable-pip-version-check", "--target", folder, *glob.glob(f"{WHEELS}/ddl_horovod-*.whl"))
        command = os.path.join(folder, "bin", "horovodrun")
        paths = {"PYTHONPATH": folder}
        assert output_of(command, "--version", **paths) == f"{horovod.__version__}\n"
        table = output_of(command, "--check-build", **paths)
        for line in (f"Horovod v{horovod.__version__}:", "    [X] PyTorch", "    [ ] MXNet", "    [X] Gloo",
                     "    [ ] CCL"):
            assert line in table.splitlines(), table
        program = "import horovod.torch as hvd; hvd.init(); print('size', hvd.size(), hvd.__file__)"
        told = output_of(command, "-np", "2", "-H", "localhost:2", "--gloo", "--cycle-time-ms", "5", "--no-stall-check",
                         sys.executable, "-c", program, **paths)
        assert told.count("size 2 ") == 2 and "as-horovod" in told, told
        output_of(command, "-np", "1", sys.executable, "-c", "raise SystemExit(3)", status=3, **paths)
        ranks = os.cpu_count() + 1
        assert output_of(command, "-np", str(ranks), "echo", "here", **paths).count("here") == ranks
        assert "here" in output_of(command, "-np", "1", "--min-np", "1", "echo", "here", **paths)


def test_guide():
    text = pathlib.Path(GUIDE).read_text(encoding="utf-8")
    script = re.search(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)[1]
    command, shown = re.search(r"^```console\n[$] (.*)\n((?:.*\n)+?)```$", text, re.MULTILINE).groups()
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "train.py").write_text(script, encoding="utf-8")
        words = command.replace("python train.py", f"{sys.executable} {folder}/train.py").split()
        words.insert(1, "--oversubscribe")  # the machine may have one CPU
        assert output_of(*words) == shown


def test_beside_horovod():
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(os.path.join(FOLDER, "horovod"), os.path.join(folder, "horovod"))
        assert "0.28.1+ddl" in output_of(sys.executable, "-c", "import horovod; print(horovod.__version__)",
                                         PYTHONPATH=folder)
        os.mkdir(os.path.join(folder, "horovod-0.28.1.dist-info"))
        with open(os.path.join(folder, "horovod-0.28.1.dist-info", "METADATA"), "w", encoding="utf-8") as metadata:
            metadata.write("Metadata-Version: 2.1\nName: horovod\nVersion: 0.28.1\n")
        told = output_of(sys.executable, "-c", "import horovod.torch", status=1, PYTHONPATH=folder)
        assert f"Horovod 0.28.1 and ddl-horovod are both installed in {os.path.realpath(folder)}" in told, told
        assert "pip uninstall horovod ddl-horovod" in told and "ddlrun --as-horovod" in told, told
        # Beside it, in a folder of its own, --as-horovod comes first.
        shutil.rmtree(os.path.join(folder, "horovod"))
        both = os.pathsep.join((FOLDER, folder))
        assert "0.28.1+ddl" in output_of(sys.executable, "-c", "import horovod; print(horovod.__version__)",
                                         PYTHONPATH=both)


def test_without_ddl():
    # Without the environment's packages.
    program = f"import sys; sys.path.append({FOLDER!r}); import horovod"
    told = output_of(sys.executable, "-I", "-S", "-c", program, status=1)
    assert "needs ddl, which " in told and "install the wheel of ddlrun" in told, told


run(globals(), "alone")
