#!/bin/bash
#SBATCH --account=<account>
#SBATCH --partition=YOUR_PARTITION
#SBATCH --qos=qos_name
#SBATCH --reservation={reservation}
#SBATCH --time=HH:MM:SS
#SBATCH --mail-user=your.name@example.org
#SBATCH --output=/path/to/logs/%j.out
#SBATCH --nodes=<N>
#SBATCH --job-name=<name>
srun ./a
#: 2 placeholder; 3 placeholder; 4 placeholder; 5 placeholder; 6 placeholder; 7 placeholder; 8 placeholder; 9 placeholder
