#!/bin/bash
#SBATCH --ntasks=8
srun bash -c 'export CUDA_VISIBLE_DEVICES=\$SLURM_LOCALID; ./a'
srun bash -c "export CUDA_VISIBLE_DEVICES=\$SLURM_LOCALID; ./a"
srun bash -c 'awk "{print \$1}" $SLURM_PROCID'
cat > w_$SLURM_JOB_ID.sh <<'EOF'
export ROCR_VISIBLE_DEVICES=\$SLURM_LOCALID
EOF
cat > x_$SLURM_JOB_ID.sh <<EOF
export ROCR_VISIBLE_DEVICES=\$SLURM_LOCALID
EOF
#: 3 backslash-in-quotes; 7 backslash-in-quotes
