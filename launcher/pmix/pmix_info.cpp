#include "launcher/pmix/pmix_info.h"

#include <pmix.h>
#include <pmix_deprecated.h>
#include <pmix_server.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/text.h"

namespace ddl::launcher {
namespace {

constexpr std::int32_t kMaxInfos = 4096;

Status check_packing(const char* call, pmix_status_t status) {
  if (status == PMIX_SUCCESS) return {};
  return fail(ErrorCode::kProtocol, std::string(call) + ": " + PMIx_Error_string(status));
}

/// The library's buffer, which owns its bytes.
class Buffer {
 public:
  Buffer() { PMIX_DATA_BUFFER_CONSTRUCT(&buffer_); }
  explicit Buffer(const std::string& bytes) : Buffer() {
    pmix_byte_object_t object{};
    object.bytes = static_cast<char*>(std::malloc(bytes.size() + 1));  // the library frees it
    object.size = bytes.size();
    std::memcpy(object.bytes, bytes.data(), bytes.size());
    PMIx_Data_load(&buffer_, &object);
  }
  ~Buffer() { PMIX_DATA_BUFFER_DESTRUCT(&buffer_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  Status pack(const void* source, std::int32_t count, pmix_data_type_t type) {
    return check_packing("PMIx_Data_pack",
                         PMIx_Data_pack(nullptr, &buffer_, const_cast<void*>(source), count, type));
  }
  Status unpack(void* target, std::int32_t count, pmix_data_type_t type) {
    std::int32_t got = count;
    DDL_TRY(check_packing("PMIx_Data_unpack", PMIx_Data_unpack(nullptr, &buffer_, target, &got, type)));
    if (got != count) return fail(ErrorCode::kProtocol, "PMIx_Data_unpack: too few items");
    return {};
  }
  std::string bytes() const { return std::string(buffer_.base_ptr, buffer_.bytes_used); }

 private:
  pmix_data_buffer_t buffer_{};
};

}  // namespace

Result<std::string> pack_value(const pmix_value_t& value) {
  Buffer buffer;
  DDL_TRY(buffer.pack(&value, 1, PMIX_VALUE));
  return buffer.bytes();
}

Result<pmix_value_t> unpack_value(const std::string& bytes) {
  Buffer buffer(bytes);
  pmix_value_t value;
  PMIX_VALUE_CONSTRUCT(&value);
  DDL_TRY(buffer.unpack(&value, 1, PMIX_VALUE));
  return value;
}

Result<std::string> pack_infos(const pmix_info_t* infos, std::size_t count) {
  Buffer buffer;
  const std::int32_t number = count;
  DDL_TRY(buffer.pack(&number, 1, PMIX_INT32));
  if (count > 0) DDL_TRY(buffer.pack(infos, number, PMIX_INFO));
  return buffer.bytes();
}

Result<std::vector<pmix_info_t>> unpack_infos(const std::string& bytes) {
  Buffer buffer(bytes);
  std::int32_t count = 0;
  DDL_TRY(buffer.unpack(&count, 1, PMIX_INT32));
  if (count < 0 || count > kMaxInfos) return fail(ErrorCode::kProtocol, "an event with too many pairs");
  std::vector<pmix_info_t> infos(count);
  for (auto& info : infos) PMIX_INFO_CONSTRUCT(&info);
  if (count > 0) DDL_TRY(buffer.unpack(infos.data(), count, PMIX_INFO));
  return infos;
}

namespace {

struct FreeDeleter {
  void operator()(char* text) const { std::free(text); }
};
using CString = std::unique_ptr<char, FreeDeleter>;

Status pmix_failure(const char* call, pmix_status_t status) {
  if (status == PMIX_SUCCESS) return {};
  return fail(ErrorCode::kSystem, std::string(call) + ": " + PMIx_Error_string(status));
}

std::string rank_list(const std::vector<int>& ranks) {
  std::vector<std::string> names;
  for (const int rank : ranks) names.push_back(std::to_string(rank));
  return join(names, ",");
}

}  // namespace

std::string node_map(const std::vector<std::string>& names) { return "raw:" + join(names, ","); }

Result<InfoList> job_info(const JobLaunch& job, int node_index, const std::string& directory) {
  const std::uint32_t num_ranks = job.num_ranks;
  const auto& local_ranks = job.node_ranks.at(node_index);
  const std::uint32_t local_size = local_ranks.size();

  // "0,1;2,3": which ranks each node holds.
  std::vector<std::string> rank_lists;
  for (const auto& ranks : job.node_ranks) rank_lists.push_back(rank_list(ranks));
  char* text = nullptr;
  DDL_TRY(pmix_failure("PMIx_generate_ppn", PMIx_generate_ppn(join(rank_lists, ";").c_str(), &text)));
  const CString proc_map(text);

  InfoList infos;
  infos.add_regex(PMIX_NODE_MAP, node_map(job.node_names).c_str());
  infos.add_regex(PMIX_PROC_MAP, proc_map.get());
  infos.add(PMIX_JOBID, job.job_id);
  infos.add(PMIX_UNIV_SIZE, num_ranks);
  infos.add(PMIX_JOB_SIZE, num_ranks);
  infos.add(PMIX_MAX_PROCS, num_ranks);
  infos.add(PMIX_JOB_NUM_APPS, std::uint32_t{1});
  infos.add(PMIX_NUM_NODES, static_cast<std::uint32_t>(job.node_names.size()));
  infos.add(PMIX_LOCAL_SIZE, local_size);
  infos.add(PMIX_NODE_SIZE, local_size);
  infos.add(PMIX_LOCAL_PEERS, rank_list(local_ranks));
  infos.add_rank(PMIX_LOCALLDR, local_ranks.front());
  infos.add_rank(PMIX_APPLDR, 0);
  infos.add(PMIX_APPNUM, std::uint32_t{0});
  infos.add(PMIX_TMPDIR, directory);
  infos.add(PMIX_NSDIR, directory);

  for (std::size_t index = 0; index < job.node_ranks.size(); ++index) {
    for (std::size_t local = 0; local < job.node_ranks[index].size(); ++local) {
      const int rank = job.node_ranks[index][local];
      InfoList process;
      process.add_rank(PMIX_RANK, rank);
      process.add_rank(PMIX_GLOBAL_RANK, rank);
      process.add_rank(PMIX_APP_RANK, rank);
      process.add(PMIX_APPNUM, std::uint32_t{0});
      process.add_uint16(PMIX_LOCAL_RANK, local);
      process.add_uint16(PMIX_NODE_RANK, local);
      process.add(PMIX_NODEID, static_cast<std::uint32_t>(index));
      process.add(PMIX_HOSTNAME, job.node_names[index]);
      infos.add_array(PMIX_PROC_DATA, process);
    }
  }
  return infos;
}

}  // namespace ddl::launcher
