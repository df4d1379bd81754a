// Correct scripts, each with something that a wrong one has too, and scripts of which no rule can be sure: no findings.
#include "base/fd.h"
#include "support/catch.h"
#include "templates/lint/lint.h"
#include "templates/profile/site_catalog.h"

using namespace ddl::templates;

namespace {

SiteProfile lumi_g() {
  auto site = SiteCatalog({}, [](const std::string& path) { return ddl::read_file(path); }).find("lumi-g");
  REQUIRE(site);
  return *std::move(site);
}

/// The findings, one a line.
std::string findings_of(const std::string& script, const SiteProfile* site = nullptr) {
  std::string lines;
  for (const LintFinding& finding : lint_script(script, site))
    lines += std::to_string(finding.line) + " " + finding.rule + ": " + finding.sentence + "\n";
  return lines;
}

}  // namespace

TEST_CASE("masks that are appended line by line, as in LUMI's documentation, are correct") {
  const SiteProfile lumi = lumi_g();
  const std::string script = R"(#!/bin/bash -l
#SBATCH --partition=standard-g
#SBATCH --nodes=2
#SBATCH --gpus-per-node=8
#SBATCH --ntasks-per-node=8

cat << EOF > select_gpu_$SLURM_JOB_ID
#!/bin/bash
export ROCR_VISIBLE_DEVICES=\$SLURM_LOCALID
exec "\$@"
EOF
chmod +x select_gpu_$SLURM_JOB_ID

CPU_BIND="mask_cpu:fe000000000000,fe00000000000000"
CPU_BIND="${CPU_BIND},fe0000,fe000000"
CPU_BIND="${CPU_BIND},fe,fe00"
CPU_BIND="${CPU_BIND},fe00000000,fe0000000000"

srun --cpu-bind=${CPU_BIND} ./select_gpu_$SLURM_JOB_ID python train.py
rm -f select_gpu_$SLURM_JOB_ID
)";
  CHECK(findings_of(script, &lumi) == "");
}

TEST_CASE("masks whose value is not certain have no finding") {
  const SiteProfile lumi = lumi_g();
  const std::string step = "srun --cpu-bind=$M app\n";
  for (const std::string& masks : std::vector<std::string>{
           "M=mask_cpu:fe\nfor i in 1 2; do\n  M=$M,ff0000\ndone\n",
           "M=mask_cpu:fe\nwhile read a; do M+=,ff0000; done < file\n",
           "M=mask_cpu:fe\ncase $A in\n  b) M=$M,ff0000;;\n  (c) M=$M,ff000000;;\nesac\n",
           "M=mask_cpu:fe\nadd() {\n  M=$M,ff0000\n}\n",
           "M=mask_cpu:fe\nfunction add {\n  M=$M,ff0000\n}\n",
           "M=mask_cpu:fe\n[ -n \"$A\" ] &&\n  M=$M,ff0000\n",
           "M=mask_cpu:fe\n(M=$M,ff0000)\n",
           "M=mask_cpu:fe\nM=$M,ff0000 | cat\n",
           "M=mask_cpu:fe\nM=${M:-mask_cpu:ff},ff0000\n",
           "M=mask_cpu:fe\nM='$M,ff0000'\nread M\n",
           "M=$M,ff0000\nM=$M,ff000000\n",
           "F=fe\nM=mask_cpu:$F\nF=ff\n",
           "M=(mask_cpu:fe)\nM+=(,ff0000)\n",
       }) {
    INFO(masks);
    CHECK(findings_of("#!/bin/bash\n#SBATCH --exclusive\n" + masks + step, &lumi) == "");
  }
}

TEST_CASE("a wrapper for each task sets its own GPU") {
  CHECK(findings_of("#!/bin/bash\nexport CUDA_VISIBLE_DEVICES=$((3-SLURM_LOCALID))\nexec \"$@\"\n") == "");
  CHECK(findings_of("#!/bin/bash\nexport CUDA_VISIBLE_DEVICES=$SLURM_LOCALID\nexec python train.py\n") == "");
  CHECK(findings_of(
            "#!/bin/bash\n#SBATCH --nodes=4 --ntasks-per-node=1\nexport CUDA_VISIBLE_DEVICES=$SLURM_LOCALID\n"
            "srun app\n") == "");
  CHECK(
      findings_of("#!/bin/bash\n#SBATCH -n 8\nif [ -z \"$SLURM_STEP_ID\" ]; then\n  exec srun \"$0\"\nelse\n"
                  "  export ROCR_VISIBLE_DEVICES=$SLURM_LOCALID\nfi\npython train.py\n") == "");
}

TEST_CASE("programs in the background that something waits for have no finding") {
  for (const std::string& script : std::vector<std::string>{
           "python a.py &\npython b.py &\nwait\n",
           "run() { mpirun -np 4 app & }\nrun\nwait_for_it\n",
           "ddlrun -np 4 app &\npid=$!\ntrap 'kill $pid' TERM\nwait $pid\n",
           "python server.py &\nsleep 10\nddlrun -np 4 app\n",
           "if true; then ddlrun -np 4 app & fi\nwait\n",
       }) {
    INFO(script);
    CHECK(findings_of("#!/bin/bash\n#SBATCH -n 4\n" + script) == "");
  }
}

TEST_CASE("programs that may start others on all nodes have no finding") {
  CHECK(findings_of("#!/bin/bash\n#SBATCH -N 4\n./a\n") == "");
  CHECK(findings_of("#!/bin/bash\n#SBATCH -n 64\npython train.py\n") == "");
  CHECK(findings_of("#!/bin/bash\n#SBATCH -N 4\nsrun -N 1 hostname\nconda run -n e ./launch.sh train.py\n") ==
        "");
}

TEST_CASE("a script whose variables contain each other is read in a short time") {
  std::string script = "#!/bin/bash\nA=mask_cpu:1,1\n";
  for (int i = 0; i < 1000; ++i) script += "A=$A$A\nB=$A$B\nA+=$A\nA=$B\n";
  for (int i = 0; i < 100; ++i) script += "srun --cpu-bind=$A$B app\n";
  CHECK(findings_of(script) == "");
}
