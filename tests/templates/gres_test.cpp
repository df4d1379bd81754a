#include "templates/cluster/slurm_values.h"

#include "support/catch.h"

using ddl::templates::gpus_of_gres;

TEST_CASE("GPUs of a node, of all types together") {
  CHECK(gpus_of_gres("") == 0);
  CHECK(gpus_of_gres("(null)") == 0);
  CHECK(gpus_of_gres("gpu") == 1);
  CHECK(gpus_of_gres("gpu:4") == 4);
  CHECK(gpus_of_gres("gpu:a100") == 1);
  CHECK(gpus_of_gres("gpu:mi250:8(S:0)") == 8);
  CHECK(gpus_of_gres("gpu:a100:4(S:0,2),gpu:v100:2(S:1),nvme:3") == 6);
  CHECK(gpus_of_gres("craynetwork:4,gpu:gh200:4") == 4);
}

TEST_CASE("text that only looks like GPUs, and absurd counts") {
  CHECK(gpus_of_gres("gpumem:40,shard:8,mps:100") == 0);
  CHECK(gpus_of_gres("gpu:-3") == 0);
  CHECK(gpus_of_gres("gpu:9999999999999,gpu:9999999999999") == 65536);
  CHECK(gpus_of_gres("gpu:4(S:0") == 4);
  CHECK(gpus_of_gres("))gpu:4") == 0);
}
