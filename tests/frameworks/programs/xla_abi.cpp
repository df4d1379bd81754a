// The module for JAX's own declarations of XLA's foreign function interface against the header of the installed jaxlib,
// whose folder is in the compiler's search path. All is checked by the compiler.
#include <cstddef>

#include <xla/ffi/api/c_api.h>

#include "python/kernels/jax/xla_abi.h"

namespace xla = ddl::jax::xla;

#define DDL_SAME_SIZE(ours, theirs) static_assert(sizeof(xla::ours) == sizeof(theirs))
#define DDL_SAME_PLACE(ours, our_member, theirs, their_member)                       \
  static_assert(offsetof(xla::ours, our_member) == offsetof(theirs, their_member) && \
                sizeof(xla::ours::our_member) == sizeof(theirs::their_member))
#define DDL_SAME_FUNCTION(ours, theirs) DDL_SAME_PLACE(Api, ours, XLA_FFI_Api, theirs)
#define DDL_SAME_VALUE(ours, theirs) static_assert(static_cast<int>(ours) == static_cast<int>(theirs))

static_assert(XLA_FFI_API_MAJOR == xla::kMajor);

DDL_SAME_SIZE(Extension, XLA_FFI_Extension_Base);
DDL_SAME_PLACE(Extension, type, XLA_FFI_Extension_Base, type);
DDL_SAME_PLACE(Extension, next, XLA_FFI_Extension_Base, next);
DDL_SAME_VALUE(xla::kMetadata, XLA_FFI_Extension_Metadata);
DDL_SAME_SIZE(Version, XLA_FFI_Api_Version);
DDL_SAME_PLACE(Version, major, XLA_FFI_Api_Version, major_version);
DDL_SAME_PLACE(Version, minor, XLA_FFI_Api_Version, minor_version);
DDL_SAME_SIZE(ByteSpan, XLA_FFI_ByteSpan);
DDL_SAME_PLACE(ByteSpan, data, XLA_FFI_ByteSpan, ptr);
DDL_SAME_PLACE(ByteSpan, size, XLA_FFI_ByteSpan, len);

DDL_SAME_SIZE(Buffer, XLA_FFI_Buffer);
DDL_SAME_PLACE(Buffer, dtype, XLA_FFI_Buffer, dtype);
DDL_SAME_PLACE(Buffer, data, XLA_FFI_Buffer, data);
DDL_SAME_PLACE(Buffer, dimensions, XLA_FFI_Buffer, rank);
DDL_SAME_PLACE(Buffer, shape, XLA_FFI_Buffer, dims);
DDL_SAME_SIZE(Buffers, XLA_FFI_Args);
DDL_SAME_PLACE(Buffers, size, XLA_FFI_Args, size);
DDL_SAME_PLACE(Buffers, buffers, XLA_FFI_Args, args);
DDL_SAME_SIZE(Buffers, XLA_FFI_Rets);
DDL_SAME_PLACE(Buffers, buffers, XLA_FFI_Rets, rets);
DDL_SAME_SIZE(Scalar, XLA_FFI_Scalar);
DDL_SAME_PLACE(Scalar, dtype, XLA_FFI_Scalar, dtype);
DDL_SAME_PLACE(Scalar, value, XLA_FFI_Scalar, value);
DDL_SAME_SIZE(Attributes, XLA_FFI_Attrs);
DDL_SAME_PLACE(Attributes, size, XLA_FFI_Attrs, size);
DDL_SAME_PLACE(Attributes, types, XLA_FFI_Attrs, types);
DDL_SAME_PLACE(Attributes, names, XLA_FFI_Attrs, names);
DDL_SAME_PLACE(Attributes, values, XLA_FFI_Attrs, attrs);
DDL_SAME_VALUE(xla::kScalar, XLA_FFI_AttrType_SCALAR);
DDL_SAME_VALUE(xla::kString, XLA_FFI_AttrType_STRING);

DDL_SAME_SIZE(CallFrame, XLA_FFI_CallFrame);
DDL_SAME_PLACE(CallFrame, extension, XLA_FFI_CallFrame, extension_start);
DDL_SAME_PLACE(CallFrame, api, XLA_FFI_CallFrame, api);
DDL_SAME_PLACE(CallFrame, context, XLA_FFI_CallFrame, ctx);
DDL_SAME_PLACE(CallFrame, stage, XLA_FFI_CallFrame, stage);
DDL_SAME_PLACE(CallFrame, arguments, XLA_FFI_CallFrame, args);
DDL_SAME_PLACE(CallFrame, results, XLA_FFI_CallFrame, rets);
DDL_SAME_PLACE(CallFrame, attributes, XLA_FFI_CallFrame, attrs);
DDL_SAME_PLACE(CallFrame, future, XLA_FFI_CallFrame, future);
DDL_SAME_VALUE(xla::kInstantiate, XLA_FFI_ExecutionStage_INSTANTIATE);
DDL_SAME_VALUE(xla::kExecute, XLA_FFI_ExecutionStage_EXECUTE);

DDL_SAME_SIZE(TypeId, XLA_FFI_TypeId);
DDL_SAME_PLACE(Metadata, version, XLA_FFI_Metadata, api_version);
DDL_SAME_PLACE(Metadata, traits, XLA_FFI_Metadata, traits);
DDL_SAME_SIZE(MetadataExtension, XLA_FFI_Metadata_Extension);
DDL_SAME_PLACE(MetadataExtension, metadata, XLA_FFI_Metadata_Extension, metadata);

DDL_SAME_SIZE(ErrorCreateArguments, XLA_FFI_Error_Create_Args);
DDL_SAME_PLACE(ErrorCreateArguments, message, XLA_FFI_Error_Create_Args, message);
DDL_SAME_PLACE(ErrorCreateArguments, code, XLA_FFI_Error_Create_Args, errc);
DDL_SAME_PLACE(ErrorDestroyArguments, error, XLA_FFI_Error_Destroy_Args, error);
DDL_SAME_PLACE(StreamGetArguments, context, XLA_FFI_Stream_Get_Args, ctx);
DDL_SAME_PLACE(StreamGetArguments, stream, XLA_FFI_Stream_Get_Args, stream);
DDL_SAME_PLACE(FutureCreateArguments, future, XLA_FFI_Future_Create_Args, future);
DDL_SAME_PLACE(FutureSetAvailableArguments, future, XLA_FFI_Future_SetAvailable_Args, future);
DDL_SAME_PLACE(FutureSetErrorArguments, future, XLA_FFI_Future_SetError_Args, future);
DDL_SAME_PLACE(FutureSetErrorArguments, error, XLA_FFI_Future_SetError_Args, error);

DDL_SAME_PLACE(Api, version, XLA_FFI_Api, api_version);
DDL_SAME_FUNCTION(error_create, XLA_FFI_Error_Create);
DDL_SAME_FUNCTION(error_destroy, XLA_FFI_Error_Destroy);
DDL_SAME_FUNCTION(stream_get, XLA_FFI_Stream_Get);
DDL_SAME_FUNCTION(state_set, XLA_FFI_State_Set);
DDL_SAME_FUNCTION(state_get, XLA_FFI_State_Get);
DDL_SAME_FUNCTION(future_create, XLA_FFI_Future_Create);
DDL_SAME_FUNCTION(future_set_available, XLA_FFI_Future_SetAvailable);
DDL_SAME_FUNCTION(future_set_error, XLA_FFI_Future_SetError);

#if XLA_FFI_API_MINOR >= 2
static_assert(xla::kTypeInfoMinor == 2);
DDL_SAME_SIZE(TypeInfo, XLA_FFI_TypeInfo);
DDL_SAME_PLACE(TypeInfo, deleter, XLA_FFI_TypeInfo, deleter);
DDL_SAME_PLACE(TypeRegisterArguments, name, XLA_FFI_Type_Register_Args, name);
DDL_SAME_PLACE(TypeRegisterArguments, type, XLA_FFI_Type_Register_Args, type_id);
DDL_SAME_PLACE(TypeRegisterArguments, info, XLA_FFI_Type_Register_Args, type_info);
DDL_SAME_FUNCTION(type_register, XLA_FFI_Type_Register);
DDL_SAME_PLACE(Metadata, state_type, XLA_FFI_Metadata, state_type_id);
#else
DDL_SAME_PLACE(TypeRegisterArguments, name, XLA_FFI_TypeId_Register_Args, name);
DDL_SAME_PLACE(TypeRegisterArguments, type, XLA_FFI_TypeId_Register_Args, type_id);
DDL_SAME_FUNCTION(type_register, XLA_FFI_TypeId_Register);
DDL_SAME_SIZE(OldStateArguments, XLA_FFI_State_Set_Args);
DDL_SAME_PLACE(OldStateArguments, deleter, XLA_FFI_State_Set_Args, deleter);
#endif
#if XLA_FFI_API_MINOR >= 3
static_assert(xla::kStageMinor == 3);
DDL_SAME_SIZE(StateArguments, XLA_FFI_State_Set_Args);
DDL_SAME_SIZE(StateArguments, XLA_FFI_State_Get_Args);
DDL_SAME_PLACE(StateArguments, stage, XLA_FFI_State_Set_Args, stage);
DDL_SAME_PLACE(StateArguments, type, XLA_FFI_State_Get_Args, type_id);
DDL_SAME_PLACE(StateArguments, state, XLA_FFI_State_Get_Args, state);
#else
DDL_SAME_PLACE(OldStateArguments, context, XLA_FFI_State_Get_Args, ctx);
DDL_SAME_PLACE(OldStateArguments, type, XLA_FFI_State_Get_Args, type_id);
DDL_SAME_PLACE(OldStateArguments, state, XLA_FFI_State_Get_Args, state);
#endif

DDL_SAME_VALUE(xla::kInvalidArgument, XLA_FFI_Error_Code_INVALID_ARGUMENT);
DDL_SAME_VALUE(xla::kDeadlineExceeded, XLA_FFI_Error_Code_DEADLINE_EXCEEDED);
DDL_SAME_VALUE(xla::kFailedPrecondition, XLA_FFI_Error_Code_FAILED_PRECONDITION);
DDL_SAME_VALUE(xla::kAborted, XLA_FFI_Error_Code_ABORTED);
DDL_SAME_VALUE(xla::kUnimplemented, XLA_FFI_Error_Code_UNIMPLEMENTED);
DDL_SAME_VALUE(xla::kInternal, XLA_FFI_Error_Code_INTERNAL);
DDL_SAME_VALUE(xla::kUnavailable, XLA_FFI_Error_Code_UNAVAILABLE);

DDL_SAME_VALUE(xla::kBool, XLA_FFI_DataType_PRED);
DDL_SAME_VALUE(xla::kInt8, XLA_FFI_DataType_S8);
DDL_SAME_VALUE(xla::kInt16, XLA_FFI_DataType_S16);
DDL_SAME_VALUE(xla::kInt32, XLA_FFI_DataType_S32);
DDL_SAME_VALUE(xla::kInt64, XLA_FFI_DataType_S64);
DDL_SAME_VALUE(xla::kUint8, XLA_FFI_DataType_U8);
DDL_SAME_VALUE(xla::kUint16, XLA_FFI_DataType_U16);
DDL_SAME_VALUE(xla::kUint32, XLA_FFI_DataType_U32);
DDL_SAME_VALUE(xla::kUint64, XLA_FFI_DataType_U64);
DDL_SAME_VALUE(xla::kFloat16, XLA_FFI_DataType_F16);
DDL_SAME_VALUE(xla::kFloat32, XLA_FFI_DataType_F32);
DDL_SAME_VALUE(xla::kFloat64, XLA_FFI_DataType_F64);
DDL_SAME_VALUE(xla::kBfloat16, XLA_FFI_DataType_BF16);
DDL_SAME_VALUE(xla::kFloat8E5m2, XLA_FFI_DataType_F8E5M2);
DDL_SAME_VALUE(xla::kFloat8E4m3fn, XLA_FFI_DataType_F8E4M3FN);
DDL_SAME_VALUE(xla::kFloat8E5m2fnuz, XLA_FFI_DataType_F8E5M2FNUZ);
DDL_SAME_VALUE(xla::kFloat8E4m3fnuz, XLA_FFI_DataType_F8E4M3FNUZ);
