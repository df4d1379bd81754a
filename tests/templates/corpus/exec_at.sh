#!/bin/bash
#SBATCH --ntasks=8
cat > select_$SLURM_JOB_ID.sh <<'EOF'
#!/bin/bash
exec "$@"
EOF
srun bash select_$SLURM_JOB_ID.sh ./a
#: none
