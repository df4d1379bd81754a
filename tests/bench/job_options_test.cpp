#include "bench/settings.h"

#include "support/catch.h"

namespace ddl::bench {
namespace {

std::string refusal(const JobOptions& options, bool takes_job = true) {
  const auto shape = job_shape(options, takes_job);
  return shape ? "" : shape.error().message();
}

TEST_CASE("without options a job has two ranks on one host") {
  const auto shape = job_shape({}, true);
  REQUIRE(shape);
  CHECK(shape->ranks == 2);
  CHECK(shape->hosts == 1);
  CHECK(shape->rate.empty());
  CHECK(shape->sizes.empty());
  CHECK(job_shape({}, false));
}

TEST_CASE("hosts have one rank each by default") {
  CHECK(job_shape({.hosts = 4}, true)->ranks == 4);
  CHECK(job_shape({.ranks = 8, .hosts = 4}, true)->ranks == 8);
}

TEST_CASE("a rank has one CPU by default, and CPUs are for whole ranks") {
  Settings settings;
  settings.cpus = {0, 1, 2, 3, 4};
  CHECK(settings.ranks_with_cpus() == 5);
  settings.job = *job_shape({.cpus_per_rank = 2}, true);
  CHECK(settings.ranks_with_cpus() == 2);
  CHECK(refusal({.cpus_per_rank = 2}, false).find("--cpus-per-rank") != std::string::npos);
}

TEST_CASE("sizes are sorted, a rate and a model are kept") {
  const auto shape =
      job_shape({.hosts = 2, .rate = "10gbit", .sizes = {"1M", "4", "64K"}, .model = "bert-base"}, true);
  REQUIRE(shape);
  CHECK(shape->sizes == std::vector<std::uint64_t>{4, 64 << 10, 1 << 20});
  CHECK(shape->rate == "10gbit");
  CHECK(shape->model == Model::kBertBase);
}

TEST_CASE("an invalid job is refused with the reason") {
  CHECK(refusal({.ranks = 1}).find("--np 1") != std::string::npos);
  CHECK(refusal({.ranks = 6, .hosts = 4}).find("multiple of --hosts") != std::string::npos);
  CHECK(refusal({.rate = "1gbit"}).find("--hosts 2") != std::string::npos);
  CHECK(refusal({.hosts = 2, .rate = "fast"}).find("\"fast\"") != std::string::npos);
  CHECK(refusal({.hosts = 2, .rate = "1gbit; reboot"}).find("--rate") != std::string::npos);
  CHECK(refusal({.sizes = {"4", "a lot"}}).find("\"a lot\"") != std::string::npos);
  CHECK(refusal({.model = "resnet5"}).find("resnet50, resnet101") != std::string::npos);
  CHECK(refusal({.ranks = 4}, false).find("--np") != std::string::npos);
}

TEST_CASE("a size that is not a whole number of elements is refused") {
  for (const char* size : {"3", "1", "2B", "4097"}) {
    INFO(size);
    const std::string sentence = refusal({.sizes = {"64K", size}});
    CHECK(sentence.find(size) != std::string::npos);
    CHECK(sentence.find("multiple of 4 bytes") != std::string::npos);
  }
  CHECK(refusal({.sizes = {"4", "12", "4100", "1K"}}).empty());
}

TEST_CASE("a contender that does not take part is refused with the names of those that do") {
  const std::string nobody = refusal({.contenders = {"ddl", "nobody"}});
  CHECK(nobody.find("\"nobody\"") != std::string::npos);
  CHECK(nobody.find("ddl, ddl-again, ddl-heap, ddl-named, ddl-named-timeline, ddl-mpi, openmpi") !=
        std::string::npos);
  CHECK(refusal({.contenders = {""}}).find("\"\"") != std::string::npos);
  // Some take part on one host only, others on several.
  CHECK(refusal({.contenders = {"ddl-heap"}}).empty());
  CHECK(refusal({.hosts = 2, .contenders = {"ddl-heap"}}).find("on 2 hosts") != std::string::npos);
  CHECK(refusal({.hosts = 2, .contenders = {"ddl-ring", "tcp-limit"}}).empty());
  CHECK(refusal({.contenders = {"ddl-ring"}}).find("on 1 host;") != std::string::npos);
}

}  // namespace
}  // namespace ddl::bench
