// Every environment variable that ddlrun sets for ranks or libddl reads. docs/reference/environment.md lists the
// same.
#pragma once

namespace ddl::contract::env {

// Identity, as Horovod names it.
inline constexpr char kRank[] = "HOROVOD_RANK";
inline constexpr char kSize[] = "HOROVOD_SIZE";
inline constexpr char kLocalRank[] = "HOROVOD_LOCAL_RANK";
inline constexpr char kLocalSize[] = "HOROVOD_LOCAL_SIZE";
inline constexpr char kCrossRank[] = "HOROVOD_CROSS_RANK";
inline constexpr char kCrossSize[] = "HOROVOD_CROSS_SIZE";
inline constexpr char kHostname[] = "HOROVOD_HOSTNAME";
inline constexpr char kHorovodElastic[] =
    "HOROVOD_ELASTIC";  ///< init() after shutdown() asks for the rank's new place

// By which programs of Horovod that were built with Gloo find each other.
inline constexpr char kHorovodController[] = "HOROVOD_CONTROLLER";
inline constexpr char kHorovodCpuOperations[] = "HOROVOD_CPU_OPERATIONS";
inline constexpr char kHorovodGlooIface[] =
    "HOROVOD_GLOO_IFACE";  ///< the interface of Gloo's own connections
inline constexpr char kHorovodGlooAddress[] = "HOROVOD_GLOO_RENDEZVOUS_ADDR";
inline constexpr char kHorovodGlooPort[] = "HOROVOD_GLOO_RENDEZVOUS_PORT";
inline constexpr char kHorovodGlooTimeout[] = "HOROVOD_GLOO_TIMEOUT_SECONDS";

// Of an elastic job: how often its ranks were started before.
inline constexpr char kGeneration[] = "DDL_GENERATION";
/// 1: the launcher takes this process into the job again when others have failed (contract/elastic.h).
inline constexpr char kElastic[] = "DDL_ELASTIC";
/// A folder for the state of an elastic job, from which the next one goes on; and after how many commits it is written.
inline constexpr char kElasticStateDir[] = "DDL_ELASTIC_STATE_DIR";
inline constexpr char kElasticStateInterval[] = "DDL_ELASTIC_STATE_INTERVAL";

// Identity, as torch.distributed names it.
inline constexpr char kTorchRank[] = "RANK";
inline constexpr char kTorchWorldSize[] = "WORLD_SIZE";
inline constexpr char kTorchLocalRank[] = "LOCAL_RANK";
inline constexpr char kTorchLocalWorldSize[] = "LOCAL_WORLD_SIZE";
inline constexpr char kMasterAddr[] = "MASTER_ADDR";
inline constexpr char kMasterPort[] = "MASTER_PORT";
inline constexpr char kTorchRunId[] = "TORCHELASTIC_RUN_ID";

// Where JAX's first process listens: ADDRESS:PORT.
inline constexpr char kJaxCoordinator[] = "JAX_COORDINATOR_ADDRESS";

// Which of the GPUs that it sees a process of JAX uses.
inline constexpr char kJaxLocalDeviceIds[] = "JAX_LOCAL_DEVICE_IDS";
// TensorFlow's description of its cluster, as JSON.
inline constexpr char kTensorflowConfig[] = "TF_CONFIG";
// Where MXNet's scheduler listens.
inline constexpr char kMxnetRootPort[] = "DMLC_PS_ROOT_PORT";

// Defaults that ddlrun gives unless the user has set them.
inline constexpr char kOmpNumThreads[] = "OMP_NUM_THREADS";
inline constexpr char kOmpPlaces[] = "OMP_PLACES";
inline constexpr char kOmpProcBind[] = "OMP_PROC_BIND";
inline constexpr char kPythonUnbuffered[] = "PYTHONUNBUFFERED";
inline constexpr char kPythonPath[] = "PYTHONPATH";
inline constexpr char kNcclSocketIfname[] = "NCCL_SOCKET_IFNAME";  ///< interfaces of NCCL and RCCL, by comma
inline constexpr char kGlooSocketIfname[] = "GLOO_SOCKET_IFNAME";  ///< the same for gloo in PyTorch
inline constexpr char kTpSocketIfname[] = "TP_SOCKET_IFNAME";      ///< and for its remote procedure calls

// Which GPUs a rank sees, by vendor.
inline constexpr char kCudaVisibleDevices[] = "CUDA_VISIBLE_DEVICES";
inline constexpr char kCudaDeviceOrder[] = "CUDA_DEVICE_ORDER";
inline constexpr char kRocrVisibleDevices[] = "ROCR_VISIBLE_DEVICES";
inline constexpr char kHipVisibleDevices[] = "HIP_VISIBLE_DEVICES";
inline constexpr char kZeAffinityMask[] = "ZE_AFFINITY_MASK";
inline constexpr char kGpuDeviceOrdinal[] = "GPU_DEVICE_ORDINAL";  ///< OpenCL's on AMD; Slurm sets it
/// Network adapters near a rank's GPUs, by comma: a hint, which nothing of ddlrun's own reads.
inline constexpr char kNearNics[] = "DDL_NEAR_NICS";

// From these libddl knows that a launcher started it: PMIx clients find their server through them.
inline constexpr char kPmixNamespace[] = "PMIX_NAMESPACE";
inline constexpr char kPmixRank[] = "PMIX_RANK";

// The same for launchers that speak PMI-1, the protocol of MPICH's processes.
inline constexpr char kPmiFd[] = "PMI_FD";  ///< inherited socket to the launcher, by number
inline constexpr char kPmiRank[] = "PMI_RANK";
inline constexpr char kPmiSize[] = "PMI_SIZE";

/// The path of the libddl beside ddlrun, for programs that are not linked with it, such as those in Python.
inline constexpr char kLibrary[] = "DDL_LIBRARY";

// Read by libddl; what they mean is in the table of runtime/src/common/settings.cpp.
inline constexpr char kTimeoutSeconds[] = "DDL_TIMEOUT_SECONDS";
inline constexpr char kStartTimeoutSeconds[] = "DDL_START_TIMEOUT_SECONDS";
inline constexpr char kAllowSingleton[] = "DDL_ALLOW_SINGLETON";
inline constexpr char kSpinMicroseconds[] = "DDL_SPIN_MICROSECONDS";
inline constexpr char kStagingBytes[] = "DDL_STAGING_BYTES";
inline constexpr char kAlgorithm[] = "DDL_ALGORITHM";
inline constexpr char kCpuOperations[] = "DDL_CPU_OPERATIONS";
inline constexpr char kMpi[] = "DDL_MPI";
inline constexpr char kMpiFinalize[] = "DDL_MPI_FINALIZE";
inline constexpr char kExchange[] = "DDL_EXCHANGE";
inline constexpr char kStores[] = "DDL_STORES";
inline constexpr char kFusionBytes[] = "DDL_FUSION_BYTES";
inline constexpr char kHorovodFusionThreshold[] = "HOROVOD_FUSION_THRESHOLD";
inline constexpr char kGpuOperations[] = "DDL_GPU_OPERATIONS";
inline constexpr char kHorovodGpuOperations[] = "HOROVOD_GPU_OPERATIONS";
inline constexpr char kCheck[] = "DDL_CHECK";
inline constexpr char kDeterministic[] = "DDL_DETERMINISTIC";
inline constexpr char kGpuPieceBytes[] = "DDL_GPU_PIECE_BYTES";
inline constexpr char kTimeline[] = "DDL_TIMELINE";
inline constexpr char kHorovodTimeline[] = "HOROVOD_TIMELINE";
inline constexpr char kTimelineMaxMb[] = "DDL_TIMELINE_MAX_MB";
inline constexpr char kModuleDirectory[] = "DDL_MODULE_DIR";
inline constexpr char kNetworkInterfaces[] = "DDL_NETWORK_INTERFACES";
inline constexpr char kSocketsPerPeer[] = "DDL_SOCKETS_PER_PEER";
inline constexpr char kJobKeyFd[] = "DDL_JOB_KEY_FD";
inline constexpr char kRankRecord[] = "DDL_RANK_RECORD";
inline constexpr char kVerbose[] = "DDL_VERBOSE";
inline constexpr char kReportStart[] = "DDL_REPORT_START";
inline constexpr char kFault[] = "DDL_FAULT";
inline constexpr char kClockSkew[] = "DDL_CLOCK_SKEW";  ///< SECONDS:PPM by which the clock of events is wrong

// Between mpirun and the ranks that it starts.
inline constexpr char kMpiTmpdir[] = "DDL_MPI_TMPDIR";  ///< TMPDIR of the ranks
inline constexpr char kMpiHead[] = "DDL_MPI_HEAD";      ///< JOB/HOST/PID: the scheduler's job and the ddlrun

// Read by ddlrun.
inline constexpr char kAllowExposedPmix[] = "DDL_ALLOW_EXPOSED_PMIX";  ///< 1: root may use an unpatched PMIx
inline constexpr char kNoColor[] = "NO_COLOR";

}  // namespace ddl::contract::env
