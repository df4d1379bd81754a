// What the stand-in for a vendor's collectives uses of the stand-in for its runtime, beyond the vendor's functions.
#pragma once

#include <cstddef>

extern "C" {

/// Calls the operation when the stream has come so far. stream: as in the vendor's functions, of this GPU.
void ddl_stand_in_put(void* stream, int gpu, void (*operation)(void*), void* argument);
/// Where an operation of a GPU reaches these bytes.
void* ddl_stand_in_reach(const void* address, std::size_t bytes);
/// No other process may open what was allocated there.
void ddl_stand_in_keep_private(const void* memory);
/// The next copy that this thread puts on a stream fails.
void ddl_stand_in_fail_next_copy();
/// Waits until a thread has asked for an event while the program records a graph. False: not within this time.
bool ddl_stand_in_wait_for_query_in_capture(int milliseconds);
/// -1: none is current on this thread.
int ddl_stand_in_current_gpu();
/// The GPU that the memory belongs to; -1: it is none of a GPU.
int ddl_stand_in_gpu_of(const void* address);
/// Which 8-bit floats the vendor's collectives combine: 0 none, 1 those of the OCP, 2 FNUZ.
int ddl_stand_in_float8();
/// 16 bytes.
void ddl_stand_in_uuid(int gpu, unsigned char* uuid);

}  // extern "C"
