// Each rule finds its error, with the right line and sentence, and not what only looks like it.
#include "templates/lint/lint.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/fd.h"
#include "support/catch.h"
#include "templates/profile/site_catalog.h"

using namespace ddl::templates;

namespace {

SiteProfile shipped(const std::string& name) {
  auto site = SiteCatalog({}, [](const std::string& path) { return ddl::read_file(path); }).find(name);
  REQUIRE(site);
  return *std::move(site);
}

/// LUMI-G's node, and a Slurm about which the site publishes something.
SiteProfile strict_site() {
  SiteProfile site = shipped("lumi-g");
  site.slurm.mpi_types = {"cray_shasta", "pmi2", "pmix_v4"};
  site.slurm.gpu_bind_closest = false;
  site.slurm.task_request = TaskRequest::kTotal;
  site.slurm.account_suffix = "_g";
  site.slurm.srun_only = {"--hint"};
  site.setup.needed = {{{"FI_MR_CACHE_MONITOR", "userfaultfd"}, {"NCCL_CROSS_NIC", "1"}},
                       "NCCL",
                       "data may be wrong without.",
                       /*between_nodes=*/true};
  return site;
}

/// A site of which nothing is known.
SiteProfile plain_site() { return {}; }

struct Case {
  std::string rule;
  int line = 0;
  std::string sentence;  ///< a part of it
  std::string script;    ///< that has it
  std::string near_miss;
  bool with_site = false;
};

const std::string kHead = "#!/bin/bash\n";
const std::string kTraining = "#SBATCH --gpus-per-node=8\nsrun python train.py\n";

std::vector<Case> cases() {
  return {
      {"no-interpreter", 1, "write #!/bin/bash as its first line", "#SBATCH -n 1\nsrun app\n",
       "#! /bin/bash\nsrun app\n"},
      {"no-interpreter", 1, "a byte order mark, which an editor has written",
       "\xEF\xBB\xBF#!/bin/bash\nsrun app\n", kHead + "echo '\xEF\xBB\xBF'\n"},
      {"dos-line-ends", 2, "convert it with dos2unix", "#!/bin/bash\nsrun app\r\n",
       "#!/bin/bash\nsrun \\r app\n"},

      {"directive-misspelt", 2, "takes this line for a comment", kHead + "# SBATCH --mem=5\n",
       kHead + "# SBATCH options follow\n##SBATCH --mem=5\n"},
      {"directive-misspelt", 2, "takes this line for a comment", kHead + "#sbatch -n 5\n",
       kHead + "#batch -n 5\n"},
      {"directive-misspelt", 2, "takes this line for a comment", kHead + "#SBTACH --mem=5\n",
       kHead + "#SBATCH --mem=5\n"},
      {"directive-misspelt", 2, "at the beginning of the line", kHead + "  #SBATCH --mem=5\n",
       kHead + "  # --mem=5\n"},
      {"directive-misspelt", 2, "write #SBATCH --mem=5", kHead + "#SBATCH--mem=5\n",
       kHead + "#SBATCH\t--mem=5\n"},
      {"directive-misspelt", 2, "comes from a document", kHead + "#SBATCH \\--job-name=hvd\n",
       kHead + "#SBATCH --job-name=\\\"hvd\n"},
      {"directive-misspelt", 2, "'\xe2\x80\x93mem=5' is not an option", kHead + "#SBATCH \xe2\x80\x93mem=5\n",
       kHead + "#SBATCH -n1 # \xe2\x80\x93mem=5\n#SBATCH hetjob\n"},
      {"directive-misspelt", 2,
       "a blank ends the value of --mail-type, and sbatch refuses the script because of 'FAIL'",
       kHead + "#SBATCH --mail-type=END, FAIL\n", kHead + "#SBATCH --mail-type=END,FAIL\n"},
      {"directive-misspelt", 2, "write --ntasks=4", kHead + "#SBATCH --ntasks = 4\n",
       kHead + "#SBATCH --ntasks=4 # 4\n"},
      {"directive-not-read", 4, "at the first command, on line 3",
       kHead + "#SBATCH -n 1\nmodule purge\n#SBATCH --time=5\n",
       kHead + "#SBATCH -n 1\n\n# text\n#SBATCH --time=5\ncat > job <<EOF\n#SBATCH --time=5\nEOF\n"},
      {"variable-in-directive", 2, "takes '$HOME/%j.out' of --output literally",
       kHead + "#SBATCH -o $HOME/%j.out\n", kHead + "#SBATCH -o %x-%j.out\nexport A=$HOME\n"},
      {"variable-in-directive", 3, "takes '~/out' of --output", kHead + "\n#SBATCH --output ~/out\n",
       kHead + "#SBATCH --output=a~b\n"},

      {"unknown-option", 2, "no option --tiem, and sbatch refuses the script; write --time",
       kHead + "#SBATCH --tiem=30\n", kHead + "#SBATCH --time=30 --uenv=a --container-image=b\n"},
      {"unknown-option", 2, "write --gpus-per-node", kHead + "#SBATCH --gpus-per-nodes=8\n",
       kHead + "#SBATCH --gpus-per-node=8 --cpus-per-t=4 --output=a --tasks-per-node 1\n"},
      {"unknown-option", 3, "no option --gpus-per-nodes, and srun starts nothing",
       kHead + "\nsrun --gpus-per-nodes=8 app\n", kHead + "\nsrun app --gpus-per-nodes=8\n"},
      {"unknown-option", 2, "--gpu may mean --gpu-bind, --gpu-freq, --gpus, --gpus-per-node,",
       kHead + "#SBATCH --gpu=4\n", kHead + "#SBATCH --gpus=4\nsrun --gpu-b=none app\n"},
      {"unknown-option", 2, "--mpi is an option of srun, and sbatch refuses the script",
       kHead + "#SBATCH --mpi=pmix\n", kHead + "srun --mpi=pmix --cpu_bind=none app\n"},
      {"bad-value", 2, "--mem: 'lots' is not a size of memory", kHead + "#SBATCH --mem=lots\n",
       kHead + "#SBATCH --mem=64G\n#SBATCH --mem-per-cpu=$M\n"},
      {"bad-time", 2, "'2h' of --time is not a time", kHead + "#SBATCH --time=2h\n",
       kHead + "#SBATCH --time=00:90:00\nsrun -t 1-12 app\n"},
      {"bad-time", 3, "'1:00:00:00' of --time", kHead + "\nsrun -t 1:00:00:00 app\n",
       kHead + "#SBATCH -t UNLIMITED\n#SBATCH --time-min=5\nsrun --time=$T app\nsrun -t 2- app\n"},

      {"mem-twice", 3, "--mem-per-cpu is used together with --mem on line 2",
       kHead + "#SBATCH --mem=60G\n#SBATCH --mem-per-cpu=2G\n",
       kHead + "#SBATCH --mem=60G\n#SBATCH --mem=50G\nsrun --mem-per-cpu=2G app\n"},
      {"mem-twice", 2, "--mem-per-gpu is used together with --mem, and",
       kHead + "srun --mem=5 --mem-per-gpu 5 app\n", kHead + "srun --mem=5 app --mem-per-gpu 5\n"},
      {"signal-usr1", 2, "let the program wait for SIGUSR2", kHead + "#SBATCH --signal=SIGUSR1@90\n",
       kHead + "#SBATCH --signal=USR2@90\n"},
      {"signal-usr1", 2, "write USR2 here", kHead + "#SBATCH --signal=R:10\n",
       kHead + "#SBATCH --signal=B:USR1@60\n"},
      {"signal-to-shell", 2, "a trap for USR1", kHead + "#SBATCH --signal=B:USR1@60\nsrun app\n",
       kHead + "#SBATCH --signal=B:USR1@60\nexec srun app\n"},
      {"signal-to-shell", 2, "a trap for TERM",
       kHead + "#SBATCH --signal=BR:SIGTERM@60\ntrap a USR1\nsrun app &\n",
       kHead + "#SBATCH --signal=B:TERM@60\ntrap 'echo end' SIGTERM\nsrun app &\nwait\n"},
      {"signal-to-shell", 2, "only when the srun in the foreground has ended",
       kHead + "#SBATCH --signal=B:12@60\ntrap save USR2\nsrun app\n",
       kHead + "#SBATCH --signal=USR2@60\nsrun app\n"},
      {"requeue-open-mode", 3, "add #SBATCH --open-mode=append", kHead + "#SBATCH -n 1\n#SBATCH --requeue\n",
       kHead + "#SBATCH --requeue\n#SBATCH --open-mode=append\n"},

      {"ntasks-and-per-node", 4,
       "--ntasks=4 of this srun wins over --ntasks-per-node=8 on line 3, which is then only the maximum",
       kHead + "#SBATCH -N 2\n#SBATCH --ntasks-per-node=8\nsrun -n 4 app\n",
       kHead + "#SBATCH -N 2\n#SBATCH --ntasks-per-node=8\nsrun -n 16 app\nsrun -N1 -n1 hostname\nsrun app "
               "-n 4\n"},
      {"ntasks-and-per-node", 2, "wins over --ntasks-per-node=2, which",
       kHead + "if true; then srun --ntasks 3 --ntasks-per-node=2 app; fi\n",
       kHead + "srun --ntasks 3 app\n"},
      {"cpus-per-task-on-srun", 3, "srun does not inherit --cpus-per-task on line 2",
       kHead + "#SBATCH -c 7\nVAR=x srun app\n",
       kHead + "#SBATCH -c 7\nsrun -c 7 app\nsrun --cpus-per-task=$SLURM_CPUS_PER_TASK app\n"},
      {"cpus-per-task-on-srun", 5, "export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK before",
       kHead + "#SBATCH --cpus-per-task=7\nexport OMP_NUM_THREADS=7\n\nexec srun \\\n  app -c 7\n",
       kHead + "#SBATCH -c 7\nexport SRUN_CPUS_PER_TASK=7\nsrun app\n"},
      {"gpus-per-task", 2, "ask for --gpus-per-node", kHead + "#SBATCH -n 8 --gpus-per-task=1\nsrun app\n",
       kHead + "#SBATCH -n 8 --gpus-per-task=1\nsrun --gres-flags=allow-task-sharing app\n"},
      {"gpus-per-task", 2, "add --gres-flags=allow-task-sharing",
       kHead + "srun -n 8 --gpus-per-task=1 --gpu-bind=closest app\n",
       kHead + "#SBATCH --gpus-per-node=4\nsrun -n 8 --gpus-per-task=1 --gpu-bind=none app\n"},
      {"masks-on-shared-node", 3, "add #SBATCH --exclusive",
       kHead + "CPU_BIND=\"map_cpu:49,57,17,25\"\nsrun --cpu-bind=${CPU_BIND} app\n",
       kHead + "#SBATCH --exclusive\nsrun --cpu-bind=map_cpu:49,57 app\n"},
      {"masks-on-shared-node", 2, "name CPUs of the whole node",
       kHead + "export SLURM_CPU_BIND=v,mask_cpu:0xfe\n", kHead + "srun --cpu-bind=cores app map_cpu\n"},

      {"mask-in-part-of-node", 2, "--exact leaves the step a part of the node",
       kHead + "srun --exact --cpu-bind=map_cpu:1,9 app\n",
       kHead + "srun --overlap --cpu-bind=map_cpu:1,9 app\n"},
      {"mask-in-part-of-node", 3, "--cpus-per-task=7 leaves the step 28 of 56 CPUs of a node",
       kHead + "#SBATCH --ntasks-per-node=4 -c 7\nsrun -c $SLURM_CPUS_PER_TASK "
               "--cpu-bind=mask_cpu:0xfe,0xfe00 app\n",
       kHead + "#SBATCH --ntasks-per-node=8\nsrun -c 7 --cpu-bind=mask_cpu:0xfe,0xfe00 app\n", true},
      {"blank-in-cpu-list", 2, "ends at its first blank",
       kHead + "srun --cpu-bind=map_cpu: 49,57, 17,25 \\\n  app\n",
       kHead + "srun --cpu-bind=map_cpu:49,57 17\n"},
      {"blank-in-cpu-list", 5, "write it without blanks",
       kHead + "fe=fe\nMASKS=\"0x${fe}00,\n  0x${fe}\"\nsrun --cpu-bind=mask_cpu:$MASKS app\n",
       kHead + "fe=fe\nMASKS=\"0x${fe}00,0x${fe}\"\n\nsrun --cpu-bind=mask_cpu:$MASKS app\n"},
      {"blank-in-cpu-list", 2, "takes what follows for the program",
       kHead + "srun --cpu-bind=v,mask_cpu:0x1 ,0x2 app\n",
       kHead + "srun --cpu-bind=v,mask_cpu:0x1,0x2 app\n"},
      {"unset-cpu-list", 3, "sets no $MYMASKS", kHead + "MASK=0xfe\nsrun --cpu-bind=mask_cpu:$MYMASKS app\n",
       kHead + "for MYMASKS in 0x1 0x2; do srun --cpu-bind=mask_cpu:$MYMASKS app; done\n"},
      {"unset-cpu-list", 2, "sets no $MASK,", kHead + "export SLURM_CPU_BIND=mask_cpu:${MASK}\n",
       kHead + "source masks.sh\nsrun --cpu-bind=$MASK app\nsrun --cpu-bind=$SLURM_CPU_BIND app\n"},
      {"unset-cpu-list", 2, "sets no $MASK,", kHead + "srun --cpu-bind=$MASK app\n",
       kHead + "MASK=$(generate)\nsrun --cpu-bind=$MASK app\nsrun --cpu-bind=${1:-cores} app\n"},
      {"unset-cpu-list", 2, "$MYMASKS is set only later, on line 3",
       kHead + "srun --cpu-bind=$MYMASKS app\nMYMASKS=map_cpu:1,9\n",
       kHead + "run() {\n  srun --cpu-bind=$MYMASKS app\n}\nMYMASKS=map_cpu:1,9\nrun\n"},
      {"blank-in-cpu-list", 2, "the list of --mem-bind", kHead + "srun --mem-bind=map_mem:0, 1 app\n",
       kHead + "srun --mem-bind=map_mem:0,1 1app\nsrun --mem-bind=local app\n"},
      {"blank-in-cpu-list", 2, "the list of --gpu-bind", kHead + "srun --gpu-bind=map:0, 1 app\n",
       kHead + "srun --gpu-bind=map:0,1 1\nsrun --gpu-bind=$MAP app\n"},
      {"blank-in-cpu-list", 4, "ends at its first blank",
       kHead + "M=\"mask_cpu:fe\"\nM=\"${M},ff0000, ff000000\"\nsrun --cpu-bind=${M} app\n",
       kHead + "M=\"mask_cpu:fe\"\nsrun --cpu-bind=${M} app\nM=\"${M},ff0000, ff000000\"\n"},
      {"reserved-cpu", 4, "is to have CPU 16,", kHead + "M=mask_cpu:fe\nM+=,ff0000\nsrun --cpu-bind=$M app\n",
       kHead + "M=mask_cpu:fe\nif a; then M+=,ff0000; fi\nsrun --cpu-bind=$M app\n", true},
      {"reserved-cpu", 4, "is to have CPU 16,",
       kHead +
           "export SLURM_CPU_BIND=mask_cpu:fe\n\nexport SLURM_CPU_BIND=$SLURM_CPU_BIND,ff0000\nsrun app\n",
       kHead +
           "export SLURM_CPU_BIND=mask_cpu:fe\na && export SLURM_CPU_BIND=$SLURM_CPU_BIND,ff0000\nsrun app\n",
       true},
      {"cpu-twice", 2, "local ranks 0 and 2 both have 4 CPUs (4-7)",
       kHead + "srun --cpu-bind=mask_cpu:0xfe,0xfe00,0xF0 app\n",
       kHead + "srun --cpu-bind=mask_cpu:0xfe,0xfe00,f0000 app\n"},
      {"cpu-twice", 2, "local ranks 1 and 2 both have 1 CPU (9)",
       kHead + "srun --cpu-bind=map_cpu:1,9,0x9 app\n", kHead + "srun --cpu-bind=map_cpu:1*2,9 app\n"},
      {"cpu-beyond-node", 2, "local rank 1 is to have CPU 128, and a node of lumi-g has CPUs 0 to 127",
       kHead + "srun --cpu-bind=map_cpu:1,128 app\n", kHead + "srun --cpu-bind=map_cpu:1,127 app\n", true},
      {"cpu-beyond-node", 2, "local rank 0 is to have CPU 129",
       kHead + "srun --cpu-bind=mask_cpu:0xfe00000000000000000000000000000000 app\n",
       kHead + "srun --cpu-bind=mask_cpu:0xfe000000000000000000000000000000 app\n", true},
      {"reserved-cpu", 2, "is to have CPU 48, which nodes of lumi-g keep for the system",
       kHead + "srun --cpu-bind=map_cpu:49,48 app\n", kHead + "srun --cpu-bind=map_cpu:49,57 app\n", true},
      {"reserved-cpu", 3, "CPU 0,", kHead + "\nsrun --cpu-bind=mask_cpu:0xff app\n",
       kHead + "#SBATCH -S 0\nsrun --cpu-bind=mask_cpu:0xff app\n", true},

      {"srun-ddlrun", 2, "write ddlrun without srun", kHead + "srun bash -lc 'cd x; exec ddlrun -np 8 app'\n",
       kHead + "srun bash -c 'ddlrun --show-topology; echo ddlrun'\nbash -c 'ddlrun -np 8 app'\n"},
      {"srun-ddlrun", 2, "srun starts a ddlrun for each task",
       kHead + "srun singularity exec --nv -B /scratch i.sif ddlrun -np 8 app\n",
       kHead +
           "srun singularity exec -B /scratch i.sif python a.py ddlrun\nsingularity exec i.sif ddlrun app\n"},
      {"srun-ddlrun", 3, "mpirun starts a ddlrun for each rank", kHead + "\nmpirun -np 4 ddlrun -np 4 app\n",
       kHead + "\nmpirun -np 4 app ddlrun\nddlrun -np 4 mpirun\n"},
      {"srun-ddlrun", 2, "write ddlrun without srun", kHead + "srun -n 8 ddlrun --launcher slurm app\n",
       kHead + "srun -n 8 ddlrun --launcher local -np 4 app\nsrun -n 1 ddlrun app\nsrun --pty bash -c "
               "'ddlrun app'\n"},
      {"srun-ddlrun", 2, "write ddlrun without srun", kHead + "srun -n 8 A=1 /opt/bin/ddlrun -np 8 app\n",
       kHead + "srun ddlrun --show-topology\nddlrun -np 8 srun\n"},
      {"background-without-wait", 3, "write wait as the last line",
       kHead + "for i in 1 2; do\n  srun -n 1 app $i &\ndone\necho started\n",
       kHead + "for i in 1 2; do\n  srun -n 1 app $i &\ndone\nwait\n"},
      {"background-without-wait", 3, "nothing waits for it", kHead + "srun a &\nsrun b &\n",
       kHead + "srun --overlap nvidia-smi &\nsrun app 2>&1 && echo done\n"},
      {"nodes-without-launcher", 4, "4 nodes on line 2, and only the first of them runs this",
       kHead + "#SBATCH --nodes=4\nmodule load python\nexec python3 -u train.py\n",
       kHead + "#SBATCH --nodes=4\nsrun hostname\npython3 -u train.py\n"},
      {"nodes-without-launcher", 3, "write ddlrun or srun in front of it",
       kHead + "#SBATCH -N 2-4\napptainer exec --nv image.sif python train.py\n",
       kHead + "#SBATCH -N 4\n$LAUNCHER python train.py\n"},
      {"background-without-wait", 2, "this ddlrun runs in the background", kHead + "ddlrun -np 4 app &\n",
       kHead + "ddlrun -np 4 app &\nwait $!\n"},
      {"background-without-wait", 2, "this mpirun runs",
       kHead + "nohup mpirun -np 4 app > log 2>&1 &\necho started\n",
       kHead + "mpirun -np 4 app &\nwhile kill -0 $!; do sleep 5; done\n"},
      {"background-without-wait", 3, "this python runs", kHead + "#SBATCH -n 1\npython train.py &\n",
       kHead + "python server.py &\n"},
      {"background-without-wait", 3, "this python runs", kHead + "#SBATCH -n 1\npython train.py &\nexit 0\n",
       kHead + "#SBATCH -n 1\npython monitor.py &\nsrun app\n"},
      {"background-without-wait", 2, "this srun runs", kHead + "srun app & disown\n",
       kHead + "srun app & disown\nwait_for_it\n"},
      {"background-without-wait", 3, "nothing waits for it", kHead + "\nsrun a &\n",
       kHead + "\nsrun -w $1 a &\n"},
      {"nodes-without-launcher", 3, "only the first of them runs this",
       kHead + "#SBATCH -N 4\nconda run --no-capture-output -n training python train.py\n",
       kHead + "#SBATCH -N 4\nconda run -n training srun python train.py\n"},
      {"nodes-without-launcher", 4, "only the first", kHead + "#SBATCH -N 2\n\npython prepare.py\n",
       kHead + "#SBATCH -N 2\n\npython prepare.py\nbash train.sh\n"},
      {"nodes-without-launcher", 3, "Slurm starts the script there",
       kHead + "#SBATCH -N 2\npython train.py\n", kHead + "#SBATCH -N 1\npython train.py\n"},
      {"task-variable-expanded", 4, "write \\$SLURM_LOCALID, or quote the word behind <<",
       kHead + "cat << EOF > wrapper\n#!/bin/bash\nexport ROCR_VISIBLE_DEVICES=$SLURM_LOCALID\nEOF\n",
       kHead + "cat << 'EOF' > wrapper\n#!/bin/bash\nexport ROCR_VISIBLE_DEVICES=$SLURM_LOCALID\nEOF\n"},
      {"task-variable-expanded", 3, "$SLURM_PROCID",
       kHead + "cat <<EOF >a.$SLURM_PROCID\n$SLURM_PROCID\nEOF\n",
       kHead + "cat <<EOF >a.$SLURM_PROCID\n$SLURM_PROCID\nEOF\nexec \"$@\"\n"},
      {"task-variable-expanded", 4, "once and for all ranks",
       kHead + "cat <<EOF >wrapper\n\\$SLURM_PROCID $SLURM_JOB_ID\n${SLURM_PROCID}\nEOF\n",
       kHead + "cat <<EOF >wrapper\n\\$SLURM_PROCID $SLURM_JOB_ID\n\\${SLURM_PROCID}\nEOF\n"},
      {"task-variable-expanded", 2, "as in srun bash -c '... $SLURM_LOCALID ...'",
       kHead + "srun bash -c \"CUDA_VISIBLE_DEVICES=$SLURM_LOCALID app\"\n",
       kHead + "srun bash -c 'CUDA_VISIBLE_DEVICES=$SLURM_LOCALID app'\n"},
      {"task-variable-expanded", 4, "write \\$((, or quote",
       kHead + "cat > w_$SLURM_JOB_ID <<EOF\n#!/bin/bash\nexport "
               "CUDA_VISIBLE_DEVICES=$((3-SLURM_LOCALID))\nEOF\n",
       kHead + "cat > w_$SLURM_JOB_ID <<EOF\n#!/bin/bash\nexport "
               "CUDA_VISIBLE_DEVICES=\\$((3-SLURM_LOCALID))\nEOF\n"},
      {"task-variable-expanded", 3, "write \\$((, or quote",
       kHead + "cat > w <<-EOF\n\texport CUDA_VISIBLE_DEVICES=$(( 3 - SLURM_LOCALID ))\n\tEOF\n",
       kHead + "cat > w <<-'EOF'\n\texport CUDA_VISIBLE_DEVICES=$(( 3 - SLURM_LOCALID ))\n\tEOF\n"},
      {"task-variable-expanded", 2, "as in srun bash -c",
       kHead + "srun bash -c \"CUDA_VISIBLE_DEVICES=$((3-SLURM_LOCALID)) app\"\n",
       kHead + "srun bash -c \"CUDA_VISIBLE_DEVICES=\\$((3-SLURM_LOCALID)) app $((2*SLURM_NNODES))\"\n"},
      {"task-variable-expanded", 2, "let each rank set ROCR_VISIBLE_DEVICES",
       kHead + "export ROCR_VISIBLE_DEVICES=$SLURM_LOCALID\nsrun -n 8 app\n",
       kHead + "export ROCR_VISIBLE_DEVICES=$SLURM_LOCALID\npython train.py\n"},
      {"task-variable-expanded", 2, "let each rank set CUDA_VISIBLE_DEVICES",
       kHead + "CUDA_VISIBLE_DEVICES=$((3-SLURM_LOCALID))\nexport CUDA_VISIBLE_DEVICES\nsrun -n 8 app\n",
       kHead + "CUDA_VISIBLE_DEVICES=$((3-SLURM_LOCALID))\nsrun -n 8 app\n"},
      {"task-variable-expanded", 3, "let each rank set ROCR_VISIBLE_DEVICES",
       kHead + "#SBATCH -N 2\nROCR_VISIBLE_DEVICES=$SLURM_LOCALID srun -n 16 app\n",
       kHead + "#SBATCH -N 2\nROCR_VISIBLE_DEVICES=$SLURM_LOCALID srun -n 2 app\n"},
      {"task-variable-expanded", 2, "let each rank set",
       kHead + "export ROCR_VISIBLE_DEVICES=$SLURM_LOCALID\nsrun app\n",
       kHead + "select() {\n  export ROCR_VISIBLE_DEVICES=$SLURM_LOCALID\n  \"$@\"\n}\nexport -f select\n"
               "srun -n 8 bash -c 'select app'\n"},
      {"task-variable-expanded", 3, "write the text in '...'",
       kHead + "echo '#!/bin/bash' > w\necho \"export ROCR_VISIBLE_DEVICES=$SLURM_LOCALID\" >> w\nchmod +x "
               "w\nsrun ./w app\n",
       kHead + "echo '#!/bin/bash' > w\necho 'export ROCR_VISIBLE_DEVICES=$SLURM_LOCALID' >> w\nchmod +x w\n"
               "echo \"$SLURM_PROCID\" > input\nsrun ./w input\n"},
      {"task-variable-expanded", 2, "$SLURM_NODEID",
       kHead + "srun torchrun --node_rank=$SLURM_NODEID train.py\n",
       kHead + "srun bash -c \"torchrun --node_rank=\\$SLURM_NODEID train.py $SLURM_JOB_ID\"\n"},

      {"exec-star", 5, "write exec \"$@\"",
       kHead + "cat << EOF > select_gpu\n#!/bin/bash\nexport ROCR_VISIBLE_DEVICES=\\$SLURM_LOCALID\nexec "
               "\\$*\nEOF\n",
       kHead + "cat << EOF > select_gpu\n#!/bin/bash\nexec \"\\$@\"\nEOF\n"},
      {"exec-star", 2, "loses their quotes", kHead + "exec nice $@\n",
       kHead + "echo exec $*; exec bash -c \"$*\"\n"},
      {"exec-star", 2, "loses their quotes", kHead + "echo 'exec $*' >> wrapper\n",
       kHead + "echo 'exec \"$@\"' >> wrapper\n"},
      {"wrapper-file-race", 2, "writes select_gpu to the same place",
       kHead + "cat << EOF > select_gpu\n#!/bin/bash\nEOF\nchmod +x ./select_gpu\n",
       kHead +
           "cat << EOF > select_gpu_$SLURM_JOB_ID\n#!/bin/bash\nEOF\nchmod +x ./select_gpu_$SLURM_JOB_ID\n"},
      {"wrapper-file-race", 3, "put $SLURM_JOB_ID into its name",
       kHead + "cd $SLURM_SUBMIT_DIR\necho '#!/bin/bash' > $PWD/run.sh\nsrun bash run.sh app\n",
       kHead + "cd $TMPDIR\necho '#!/bin/bash' > run.sh\nsrun bash run.sh app\n"},
      {"two-visible-variables", 3, "HIP_VISIBLE_DEVICES is set beside ROCR_VISIBLE_DEVICES on line 2",
       kHead + "export ROCR_VISIBLE_DEVICES=0\nHIP_VISIBLE_DEVICES=0 srun app\n",
       kHead + "export ROCR_VISIBLE_DEVICES=0\necho HIP_VISIBLE_DEVICES=0\n"},

      {"too-many-cpus", 3,
       "8 tasks with 8 CPUs each need 64 CPUs of a node, and jobs get 56 there, so that this one never "
       "starts; ask "
       "for at most 7 CPUs for each task",
       kHead + "#SBATCH --ntasks-per-node=8\n#SBATCH -c 8\n",
       kHead + "#SBATCH --ntasks-per-node=8\n#SBATCH -c 7\n", true},
      {"too-many-cpus", 2, "1 task with 57 CPUs each needs 57 CPUs of a node", kHead + "#SBATCH -c 57\n",
       kHead + "#SBATCH -c 56\n", true},
      {"too-many-cpus", 2, "ask for at most 1 CPU for each task",
       kHead + "#SBATCH --ntasks-per-node=40 -c 2\n", kHead + "#SBATCH --ntasks-per-node=40 -c 1\n", true},
      {"too-many-cpus", 2, "ask for at most 56 tasks on a node", kHead + "#SBATCH -N 2 -n 128\n",
       kHead + "#SBATCH -N 2 --ntasks 112\n", true},
      {"too-many-cpus", 2, "need 128 CPUs of a node, and jobs get 112",
       kHead + "#SBATCH --ntasks-per-node=8 -c 16 --hint=multithread\n",
       kHead + "#SBATCH --ntasks-per-node=8 -c 14 --threads-per-core=2\n", true},
      {"too-many-cpus", 2, "one with --mincpus=64 never starts", kHead + "#SBATCH --mincpus=64\n",
       kHead + "#SBATCH -n 64 -c 56\n#SBATCH --mincpus=56\n", true},
      {"account-suffix", 2, "accounts for these nodes end in _g, and m1234 does not",
       kHead + "#SBATCH -A m1234\n", kHead + "#SBATCH -A m1234_g\n", true},
      {"srun-only-option", 2, "applies --hint on srun only", kHead + "#SBATCH --hint=nomultithread\n",
       kHead + "srun --hint=nomultithread app\n", true},
      {"tasks-by-total", 2, "write --ntasks, with --mincpus", kHead + "#SBATCH --ntasks-per-node=4\n",
       kHead + "#SBATCH --ntasks=4 --mincpus=8\n", true},
      {"mpi-type", 2, "has no MPI type openmpi; it has cray_shasta, pmi2, pmix_v4",
       kHead + "srun --mpi=openmpi app\n",
       kHead + "srun --mpi=pmix app\nsrun --mpi pmi2 app\nsrun --mpi=none app\nsrun --mpi=$MPI app\n", true},
      {"gpu-bind-closest", 2, "gives ranks the wrong GPUs", kHead + "srun --gpu-bind=v,closest app\n",
       kHead + "srun --gpu-bind=map:0,1 app closest\n", true},
      {"needed-environment", 0,
       "data may be wrong without. Write export FI_MR_CACHE_MONITOR=userfaultfd NCCL_CROSS_NIC=1, or load a "
       "module "
       "whose name begins with NCCL",
       kHead + kTraining + "module load cuda\n", kHead + kTraining + "module load cuda nccl/2.20\n", true},
      {"needed-environment", 0, "data may be wrong", kHead + kTraining + "echo NCCL_CROSS_NIC=1\n",
       kHead + kTraining + "export NCCL_CROSS_NIC=1\n", true},
      {"needed-environment", 0, "data may be wrong", kHead + "#SBATCH --nodes=2\n" + kTraining,
       kHead + "#SBATCH --nodes=1\n" + kTraining, true},
  };
}

std::vector<LintFinding> of_rule(std::vector<LintFinding> findings, const std::string& rule) {
  findings.erase(std::remove_if(findings.begin(), findings.end(),
                                [&](const LintFinding& finding) { return finding.rule != rule; }),
                 findings.end());
  return findings;
}

std::vector<std::string> found(std::string_view script, const SiteProfile* site) {
  std::vector<std::string> result;
  for (const LintFinding& finding : lint_script(script, site))
    result.push_back(std::to_string(finding.line) + " " + finding.rule);
  return result;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("every rule finds its error, and not a similar correct script") {
  const SiteProfile site = strict_site();
  for (const Case& one : cases()) {
    INFO(one.rule << "\n" << one.script);
    const SiteProfile* named = one.with_site ? &site : nullptr;
    const auto findings = of_rule(lint_script(one.script, named), one.rule);
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].line == one.line);
    INFO(findings[0].sentence);
    CHECK(findings[0].sentence.find(one.sentence) != std::string::npos);
    const auto rules = lint_rules();
    const auto rule =
        std::find_if(rules.begin(), rules.end(), [&](const LintRule& r) { return r.name == one.rule; });
    REQUIRE(rule != rules.end());
    CHECK(findings[0].severity == rule->severity);
    CHECK(findings[0].reference == rule->reference);
    INFO(one.near_miss);
    CHECK(of_rule(lint_script(one.near_miss, named), one.rule).empty());
  }
}

TEST_CASE("every rule has a script in which it finds something, and a line in the reference") {
  std::set<std::string, std::less<>> covered;
  for (const Case& one : cases()) covered.insert(one.rule);
  for (const auto& file : std::filesystem::directory_iterator(DDL_SOURCE_DIR "/tests/templates/corpus")) {
    const auto script = ddl::read_file(file.path().string());
    REQUIRE(script);
    for (const LintFinding& finding : lint_script(*script, nullptr)) covered.insert(finding.rule);
  }
  const auto reference = ddl::read_file(DDL_SOURCE_DIR "/docs/reference/lint.md");
  REQUIRE(reference);
  for (const LintRule& rule : lint_rules()) {
    INFO(rule.name);
    CHECK(covered.contains(rule.name));
    const std::string severity(name_of(rule.severity));
    const std::size_t row = reference->find("| `" + std::string(rule.name) + "` | " + severity + " |");
    REQUIRE(row != std::string::npos);
    const std::string_view line = std::string_view(*reference).substr(row, reference->find('\n', row) - row);
    CHECK(line.find(rule.reference) != std::string_view::npos);
  }
}

TEST_CASE("no finding names a file of the sources, which an installed ddlrun does not have") {
  for (const LintRule& rule : lint_rules()) CHECK(rule.reference.find("docs/") == std::string_view::npos);
  const SiteProfile site = strict_site();
  for (const Case& one : cases()) {
    for (const LintFinding& finding : lint_script(one.script, &site)) {
      INFO(finding.sentence);
      CHECK(finding.sentence.find("docs/") == std::string::npos);
    }
  }
}

TEST_CASE("rules of a site need one, and data on it") {
  const SiteProfile plain = plain_site();
  for (const Case& one : cases()) {
    if (!one.with_site) continue;
    INFO(one.script);
    CHECK(of_rule(lint_script(one.script, nullptr), one.rule).empty());
    CHECK(of_rule(lint_script(one.script, &plain), one.rule).empty());
  }
}

TEST_CASE("a site whose jobs get other nodes than the script requests finds nothing") {
  const SiteProfile lumi = shipped("lumi-g");
  const auto ask = [&](const std::string& partition) {
    return found(kHead + "#SBATCH --partition=" + partition + "\n#SBATCH --ntasks=1 --cpus-per-task=128\n" +
                     "srun --cpu-bind=map_cpu:0 app\n",
                 &lumi);
  };
  CHECK_THAT(ddl::join(ask("standard-g"), ", "),
             Catch::Contains("too-many-cpus") && Catch::Contains("reserved-cpu"));
  CHECK(ask("standard") ==
        found(kHead + "#SBATCH --partition=standard\n#SBATCH --ntasks=1 --cpus-per-task=128\n" +
                  "srun --cpu-bind=map_cpu:0 app\n",
              nullptr));
}

TEST_CASE("masks are accepted where jobs have their nodes to themselves") {
  SiteProfile site = plain_site();
  const std::string script = kHead + "srun --cpu-bind=map_cpu:1,9 app\n";
  CHECK(found(script, &site) == Lines{"2 masks-on-shared-node"});
  site.slurm.whole_nodes = true;
  CHECK(found(script, &site).empty());
}

TEST_CASE("masks hold in the partitions only, and not in the qualities of service, that give whole nodes") {
  const SiteProfile lumi = shipped("lumi-g");
  const std::string step = "\nsrun --cpu-bind=map_cpu:1,9 app\n";
  CHECK(found(kHead + "#SBATCH --partition=standard-g" + step, &lumi).empty());
  CHECK(found(kHead + "#SBATCH --partition=small-g" + step, &lumi) == Lines{"3 masks-on-shared-node"});
  CHECK(found(kHead + "#SBATCH -p standard-g,small-g" + step, &lumi) == Lines{"3 masks-on-shared-node"});
  CHECK(found(kHead + "#SBATCH -p small-g --exclusive" + step, &lumi).empty());
  const SiteProfile perlmutter = shipped("perlmutter-gpu");
  CHECK(found(kHead + "#SBATCH --qos=premium" + step, &perlmutter).empty());
  CHECK(found(kHead + "#SBATCH --qos=shared" + step, &perlmutter) == Lines{"3 masks-on-shared-node"});
}

TEST_CASE(
    "CPUs of a node that keeps none for itself are its hardware threads, unless the script says otherwise") {
  const SiteProfile site = shipped("perlmutter-gpu");
  const auto ask = [&](const std::string& options) {
    return found(kHead + "#SBATCH --ntasks-per-node=4 " + options + "\n", &site);
  };
  CHECK(ask("-c 32").empty());
  CHECK(ask("-c 33") == Lines{"2 too-many-cpus"});
  CHECK(ask("-c 17 --hint=nomultithread") == Lines{"2 too-many-cpus"});
  CHECK(ask("-c 16 --hint=nomultithread").empty());
  CHECK(ask("-c 33 --overcommit").empty());
}

TEST_CASE("a wrapper for one GPU a rank, written in the job's directory") {
  const std::string script = R"(#!/bin/bash -l
#SBATCH --partition=standard-g
#SBATCH --nodes=2
#SBATCH --gpus-per-node=8
#SBATCH --ntasks-per-node=8
#SBATCH --exclusive

cat << EOF > select_gpu
#!/bin/bash

export ROCR_VISIBLE_DEVICES=\$SLURM_LOCALID
exec \$*
EOF

chmod +x ./select_gpu

CPU_BIND="map_cpu:49,57,17,25,1,9,33,41"
srun --cpu-bind=${CPU_BIND} ./select_gpu python train.py
rm -rf ./select_gpu
)";
  const SiteProfile site = shipped("lumi-g");
  const Lines expected = {"8 wrapper-file-race", "12 exec-star"};
  const auto findings = found(script, nullptr);
  CHECK(findings == expected);
}

TEST_CASE("a script that went through a document") {
  const std::string script = R"(#!/bin/bash -e
#SBATCH \--job-name=hvd
#SBATCH \--nodes=2
#SBATCH \--ntasks-per-node=4
#SBATCH -o %x-%j.out

N=\$SLURM_JOB_NUM_NODES
module load Horovod/0.28.1
srun \--mpi=pmix python train.py
)";
  CHECK(found(script, nullptr) ==
        Lines{"2 directive-misspelt", "3 directive-misspelt", "4 directive-misspelt"});
  SiteProfile site = plain_site();
  site.slurm.mpi_types = {"cray_shasta"};
  CHECK(of_rule(lint_script(script, &site), "mpi-type").front().line == 9);
}

TEST_CASE("a script of two steps, each of one task, whose brackets are not closed") {
  const std::string script = R"(#!/bin/bash
#SBATCH --mem=64000
#SBATCH --nodes=2
#SBATCH --ntasks=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=14
#SBATCH --gres=gpu:1

function list_nodes {
  scontrol show hostname $SLURM_NODELIST
}
NODE_1=$(list_nodes | awk '{print $1}' | head -n 1)
IP_1=$(dig +short ${NODE_1}
CONFIG='{"task": {"index": 0}, "worker": ["'"${NODE_1}"':33562"]}' srun -w ${NODE_1} -N 1 -n 1 --gres=gpu:1 python a.py &
CONFIG='{"task": {"index": 1}}' srun --nodes=1 --ntasks=1 --gres=gpu:1 python a.py &
wait
)";
  CHECK(found(script, nullptr) == Lines{"14 cpus-per-task-on-srun", "15 cpus-per-task-on-srun"});
  SiteProfile site = plain_site();
  site.slurm.task_request = TaskRequest::kTotal;
  CHECK(found(script, &site) ==
        Lines{"5 tasks-by-total", "14 cpus-per-task-on-srun", "15 cpus-per-task-on-srun"});
}

// Scripts that people have published. What the rules find is really wrong in them.
TEST_CASE("binding as on a slide, with blanks and with masks that are never set") {
  CHECK(found("#!/bin/bash\n#SBATCH --gpus=8\n#SBATCH --exclusive\n"
              "srun --cpu-bind=map_cpu: 49,57, 17,25, 1,9, 33,41 \\\n./application\n",
              nullptr) == Lines{"4 blank-in-cpu-list"});
  CHECK(found("#!/bin/bash\n#SBATCH --exclusive\nMASK=\"0x${fe}000000000000,0x${fe}0000000000000000,  \n"
              "0x${fe}0000,0x${fe}000000\"\nsrun --cpu-bind=mask_cpu:$MYMASKS ./application\n",
              nullptr) == Lines{"5 unset-cpu-list"});
}

TEST_CASE("a script of four processes on two nodes has no finding") {
  CHECK(
      found(
          "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks=4\n#SBATCH --ntasks-per-node=2\n"
          "#SBATCH --gres=gpu:2\n#SBATCH --mem=250G\n#SBATCH --time=01:00:00\n"
          "#SBATCH --output=run_horovod.out\n\nmodule load release/23.04\n"
          "module load Horovod/0.19.5-fosscuda-2019b-TensorFlow-2.2.0-Python-3.7.4\n\nsrun python train.py\n",
          nullptr)
          .empty());
}

TEST_CASE("a correct script, and an empty one") {
  CHECK(
      found(
          "#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=8 -c 7 --exclusive\nsrun -c 7 --mpi=cray_shasta app\n",
          nullptr)
          .empty());
  CHECK(found("", nullptr) == Lines{"1 no-interpreter"});
}
