/*
 * gpunvme: NVMe storage that a GPU drives itself.
 *
 * Link with -lgpunvme (pkg-config gpunvme). The library starts a Java virtual machine in this process with the first
 * call that needs it, and keeps it until the process ends; see gpunvme_start.
 *
 * Every function may be called by any thread at any time. Functions that can fail return GPUNVME_OK (0) or above, or
 * a negative code of enum gpunvme_status; gpunvme_last_error then says what failed, where, and what to do next, for
 * the calling thread. Handles are checked: one that was closed gives GPUNVME_ERROR_CLOSED. Sizes, offsets and lengths are
 * in bytes unless a name says blocks.
 *
 * Device addresses are CUdeviceptr (or what cudaMalloc gave); memory is used where it lies, and must stay allocated
 * until the call, or the request, is over. Host addresses are accepted in the same places: data then takes one copy
 * more. Without a GPU everything works in host memory.
 *
 * The library prints nothing and never ends the process. The virtual machine runs with -Xrs: it takes no SIGINT,
 * SIGTERM or SIGHUP handler. It does use SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGPIPE, SIGXFSZ, SIGUSR2 and SIGRTMAX - 2 inside
 * its own code; docs/c-api.md says what becomes of handlers of yours.
 *
 * After fork(), the child gets GPUNVME_ERROR_FORKED from everything; exec is fine.
 */
#ifndef GPUNVME_H
#define GPUNVME_H

#include <stddef.h>
#include <stdint.h>

#define GPUNVME_VERSION_MAJOR 0
#define GPUNVME_VERSION_MINOR 1

#if defined(__GNUC__)
#define GPUNVME_API __attribute__((visibility("default")))
#else
#define GPUNVME_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st; /* of cuda.h: a CUstream, which is a cudaStream_t, points to one */

enum gpunvme_status {
  GPUNVME_OK = 0,
  GPUNVME_PENDING = 1,            /* not over yet: no failure */
  GPUNVME_ERROR_INVALID = -1,     /* an argument makes no sense, or leaves what it is about */
  GPUNVME_ERROR_NOT_FOUND = -2,   /* no such file, device, tensor, kind */
  GPUNVME_ERROR_PERMISSION = -3,  /* not allowed, or opened without GPUNVME_WRITE */
  GPUNVME_ERROR_IO = -4,          /* the device or the kernel failed, or the file was shorter than it said */
  GPUNVME_ERROR_NO_SPACE = -5,    /* no room for what was to be written */
  GPUNVME_ERROR_GONE = -6,        /* the device is not there any more */
  GPUNVME_ERROR_CANCELLED = -7,   /* gpunvme_cancel, or the storage was closed */
  GPUNVME_ERROR_MEMORY = -8,      /* not enough memory, of the GPU or of the host */
  GPUNVME_ERROR_ACCELERATOR = -9, /* CUDA failed */
  GPUNVME_ERROR_TIMEOUT = -10,    /* a command or a controller did not answer in time */
  GPUNVME_ERROR_UNSUPPORTED = -11,
  GPUNVME_ERROR_FORMAT = -12,  /* a damaged file, or one of another format */
  GPUNVME_ERROR_CLOSED = -13,  /* the handle was closed, or never was one */
  GPUNVME_ERROR_JAVA = -14,    /* no virtual machine could be found or started */
  GPUNVME_ERROR_FORKED = -15,  /* this process is a fork of the one that started the library */
  GPUNVME_ERROR_INTERNAL = -99 /* a defect of the library; the message is worth a report */
};

/* ---- the library */

/* "0.1.0". Needs no virtual machine. */
GPUNVME_API const char *gpunvme_version(void);

/*
 * What the last failure of this thread was; "" if there was none. Valid until this thread's next call. Needs no virtual machine.
 */
GPUNVME_API const char *gpunvme_last_error(void);

/* The errno that the last failure of this thread came with; 0 if none did. */
GPUNVME_API int gpunvme_last_errno(void);

/*
 * Starts the virtual machine, which other calls do by themselves: for those who want to say how.
 *
 * java_home: of a Java 25 or newer; NULL: GPUNVME_JAVA_HOME, JAVA_HOME, java on PATH, then the newest in /usr/lib/jvm.
 * options: more options of the virtual machine ("-Xmx1g"), count of them; NULL if 0.
 *
 * A virtual machine that is in the process already is used as it is. A second call does nothing and returns
 * GPUNVME_OK. The jars are in GPUNVME_HOME, or beside the library.
 */
GPUNVME_API int gpunvme_start(const char *java_home, const char *const *options, size_t count);

/* ---- storage */

typedef struct gpunvme_storage gpunvme_storage;
typedef struct gpunvme_request gpunvme_request;

enum gpunvme_open_flags { GPUNVME_WRITE = 1 };

/*
 * Opens a file, an SSD, or a set of them: "/data/model.bin?path=pinned", "sim:size=64MiB", "vfio:0000:01:00.0",
 * "stripe:uri,uri;unit=1MiB"; docs/paths.md has them all.
 *
 * accelerator: "gpu", "cpu" (the stand-in), "auto" or NULL (the first GPU; the stand-in where there is none).
 * flags: of enum gpunvme_open_flags.
 */
GPUNVME_API int gpunvme_open(const char *uri, const char *accelerator, uint32_t flags, gpunvme_storage **storage);

/* Ends what is under way, which fails as cancelled, and closes. NULL is fine. */
GPUNVME_API int gpunvme_close(gpunvme_storage *storage);

typedef struct gpunvme_info {
  uint64_t size;        /* bytes */
  uint64_t gpu_bytes;   /* accelerator memory beside the caller's that transfers may take */
  uint32_t alignment;   /* what is aligned to this, offset and length, needs no staging; any alignment works */
  uint32_t block_bytes; /* of a logical block of the device, by which LBAs count; 512 of files, which have none */
  uint32_t gpu;         /* 1: addresses are device addresses; 0: the stand-in */
  uint32_t reserved;    /* 0 */
} gpunvme_info;

GPUNVME_API int gpunvme_get_info(gpunvme_storage *storage, gpunvme_info *info);

/* Reads or writes, and waits. */
GPUNVME_API int gpunvme_read(gpunvme_storage *storage, uint64_t offset, uint64_t address, uint64_t bytes);
GPUNVME_API int gpunvme_write(gpunvme_storage *storage, uint64_t offset, uint64_t address, uint64_t bytes);

/* What was written is on stable storage when this returns. */
GPUNVME_API int gpunvme_flush(gpunvme_storage *storage);

typedef struct gpunvme_range {
  uint64_t offset;  /* in the storage */
  uint64_t address; /* device or host memory */
  uint64_t bytes;
} gpunvme_range;

/* Many at once, in any order; all or a failure. The ranges are copied. */
GPUNVME_API int gpunvme_read_ranges(gpunvme_storage *storage, const gpunvme_range *ranges, size_t count);
GPUNVME_API int gpunvme_write_ranges(gpunvme_storage *storage, const gpunvme_range *ranges, size_t count);

/* The same without waiting. Each request is freed by gpunvme_request_free. */
GPUNVME_API int gpunvme_submit_read(
    gpunvme_storage *storage, const gpunvme_range *ranges, size_t count, gpunvme_request **request);
GPUNVME_API int gpunvme_submit_write(
    gpunvme_storage *storage, const gpunvme_range *ranges, size_t count, gpunvme_request **request);

/*
 * In the order of a stream: work that is put into the stream afterwards sees the data of a read; a write takes what earlier work
 * left. The request is over when the storage has done its part; memory that is read into belongs to the stream until that has
 * come so far, too: gpunvme_request_free waits for that. NULL is CUDA's legacy default stream. A stream that is being captured is
 * refused. Fails as unsupported on the stand-in.
 *
 * All such calls of a storage share 8 pieces of 4 MiB of pinned memory, and wait while none is free; so a stream that waits for this
 * thread has to be let go on before a long transfer, or many of them, not after.
 */
GPUNVME_API int gpunvme_submit_read_on_stream(gpunvme_storage *storage, uint64_t offset, uint64_t address,
    uint64_t bytes, struct CUstream_st *stream, gpunvme_request **request);
GPUNVME_API int gpunvme_submit_write_on_stream(gpunvme_storage *storage, uint64_t offset, uint64_t address,
    uint64_t bytes, struct CUstream_st *stream, gpunvme_request **request);

/* GPUNVME_OK if the request succeeded, GPUNVME_PENDING if it is under way, or why it failed. */
GPUNVME_API int gpunvme_poll(gpunvme_request *request);

/* The same after waiting, for timeout_ns at most; UINT64_MAX: for as long as it takes. */
GPUNVME_API int gpunvme_wait(gpunvme_request *request, uint64_t timeout_ns);

/* Asks a request to end soon; it fails as cancelled, or is over before. */
GPUNVME_API int gpunvme_cancel(gpunvme_request *request);

/* Cancels it if it is under way, waits until its memory is not used any more, and frees it. NULL is fine. */
GPUNVME_API int gpunvme_request_free(gpunvme_request *request);

typedef struct gpunvme_plan_info {
  uint64_t ios;            /* what would be read or written */
  uint64_t bytes;          /* by these, together */
  uint64_t bytes_overread; /* read only because they lie in the same blocks, or between ranges */
  uint64_t bytes_staged;   /* that take a copy more on their way */
} gpunvme_plan_info;

/* What reading these ranges would do. Nothing is read, and addresses are not looked at beyond their alignment. */
GPUNVME_API int gpunvme_plan(
    gpunvme_storage *storage, const gpunvme_range *ranges, size_t count, gpunvme_plan_info *plan);

/*
 * Texts: as much of it as fits is written to text, with a terminating 0, and *needed becomes the bytes of all of it with the 0. text
 * may be NULL if capacity is 0; needed may be NULL.
 *
 * stats: JSON; "paths": what each path has done; "memory": bytes that all of this process's storages on the same accelerator have
 * taken, and not given back, of the accelerator ("accelerator_bytes") and of pinned host memory ("pinned_bytes"). explain: which path is used, why no better one, and what would help.
 */
GPUNVME_API int gpunvme_stats(gpunvme_storage *storage, char *text, size_t capacity, size_t *needed);
GPUNVME_API int gpunvme_explain(gpunvme_storage *storage, char *text, size_t capacity, size_t *needed);

/* ---- memory of the accelerator, for programs without CUDA calls of their own */

/* Zeroed and page-aligned; freed with the storage at the latest. */
GPUNVME_API int gpunvme_allocate(gpunvme_storage *storage, uint64_t bytes, uint64_t *address);
GPUNVME_API int gpunvme_free(gpunvme_storage *storage, uint64_t address);

/* Copies between accelerator and host memory, and waits. */
GPUNVME_API int gpunvme_copy_to_host(gpunvme_storage *storage, void *host, uint64_t address, uint64_t bytes);
GPUNVME_API int gpunvme_copy_from_host(gpunvme_storage *storage, uint64_t address, const void *host, uint64_t bytes);

/*
 * Memory that belongs to no storage: it stays until it is freed, whatever is closed meanwhile. Nothing may be at work in it then.
 * accelerator: as for gpunvme_open, the same in all calls for one address.
 */
GPUNVME_API int gpunvme_memory_allocate(const char *accelerator, uint64_t bytes, uint64_t *address);
GPUNVME_API int gpunvme_memory_free(const char *accelerator, uint64_t address);
GPUNVME_API int gpunvme_memory_copy_to_host(const char *accelerator, void *host, uint64_t address, uint64_t bytes);
GPUNVME_API int gpunvme_memory_copy_from_host(
    const char *accelerator, uint64_t address, const void *host, uint64_t bytes);

/* ---- kinds: named or numbered lists of elements of the same length */

typedef struct gpunvme_kinds gpunvme_kinds;

GPUNVME_API int gpunvme_kinds_open(gpunvme_storage *storage, gpunvme_kinds **kinds);

/* Element i of the kind lies at offset + i * element; bytes is a multiple of element. */
GPUNVME_API int gpunvme_kinds_add(
    gpunvme_kinds *kinds, int32_t number, uint64_t offset, uint64_t bytes, uint64_t element);

/* `elements` elements of one kind from index on. */
GPUNVME_API int gpunvme_kinds_read(
    gpunvme_kinds *kinds, int32_t number, uint64_t index, uint64_t elements, uint64_t address);

/* Many at once, one behind the other in memory, `capacity` bytes of it. */
GPUNVME_API int gpunvme_kinds_read_many(gpunvme_kinds *kinds, const int32_t *numbers, const uint64_t *indexes,
    const uint64_t *elements, size_t count, uint64_t address, uint64_t capacity);
GPUNVME_API int gpunvme_kinds_close(gpunvme_kinds *kinds);

/* ---- layers */

typedef struct gpunvme_layer_loader gpunvme_layer_loader;

/*
 * A ring of pipeline_depth (1..1024) slots for layers of at most max_layer_bytes; all of its memory is taken here.
 * The storage stays open longer.
 */
GPUNVME_API int gpunvme_layer_loader_init(gpunvme_storage *storage, uint64_t max_layer_bytes,
    uint32_t pipeline_depth, gpunvme_layer_loader **loader);

/* Reads one layer to memory of the caller, and waits. */
GPUNVME_API int gpunvme_load_layer(
    gpunvme_layer_loader *loader, uint64_t offset, uint64_t bytes, uint64_t address);

/* Which layers gpunvme_next_layer gives next; they are read ahead. Does not wait. */
GPUNVME_API int gpunvme_prefetch_layers(
    gpunvme_layer_loader *loader, const uint64_t *offsets, const uint64_t *bytes, size_t count);

/*
 * The next layer, in the ring. With a stream, the stream waits for its data and the slot is used again when the
 * stream has come so far at the next call; without one (NULL) this waits for the data, and the slot is used again
 * at the next call. CUDA's default stream is CU_STREAM_LEGACY ((CUstream)1) here, not NULL. GPUNVME_ERROR_NOT_FOUND when none
 * was named any more.
 *
 * If the data of a layer that was given to a stream cannot be read, the stream goes on with what happens to be in the slot; the
 * next call of this, or gpunvme_layer_loader_destroy, waits for its end and fails with the reason. The call after it goes on.
 */
GPUNVME_API int gpunvme_next_layer(
    gpunvme_layer_loader *loader, struct CUstream_st *stream, uint64_t *address, uint64_t *bytes);
GPUNVME_API int gpunvme_layer_loader_destroy(gpunvme_layer_loader *loader);

/* ---- weights */

typedef struct gpunvme_weights gpunvme_weights;

/* A model: a file or folder (safetensors, GGUF), or a device that holds one; docs/weights.md. */
GPUNVME_API int gpunvme_weights_open(const char *uri, const char *accelerator, gpunvme_weights **weights);

/* JSON: format, metadata, and tensors with name, dtype, shape and bytes, in an order that stays. */
GPUNVME_API int gpunvme_weights_describe(gpunvme_weights *weights, char *text, size_t capacity, size_t *needed);

typedef struct gpunvme_tensor_read {
  uint32_t tensor;    /* as counted by gpunvme_weights_describe, from 0 */
  int32_t dimension;  /* of the slice; -1: the whole tensor */
  uint64_t start;     /* of the slice, elements of that dimension */
  uint64_t stop;      /* behind it */
  uint64_t address;   /* where it goes, contiguous */
  uint64_t capacity;  /* bytes there, at least what the slice has */
} gpunvme_tensor_read;

/* Reads tensors, or slices of them, straight to memory of the caller, and waits. */
GPUNVME_API int gpunvme_weights_read(gpunvme_weights *weights, const gpunvme_tensor_read *reads, size_t count);
GPUNVME_API int gpunvme_weights_close(gpunvme_weights *weights);

/*
 * ---- the same under the names of the first proposals: one device, counted in logical blocks
 *
 * nvme_gpu_init opens a URI, or a block device such as "/dev/nvme0n1", for reading; for writing, too, if it is an embedded controller
 * whose data is gone with it ("sim:..." without file=) or the environment has GPUNVME_ALLOW_WRITE=1. GPUNVME_ACCELERATOR is gpu, cpu or auto (without it).
 * NULL if it fails (gpunvme_last_error). stream may be NULL: then the call does not wait, nor does any stream, and
 * nvme_gpu_synchronize waits for everything that was started.
 */
typedef struct nvme_gpu nvme_gpu;

GPUNVME_API nvme_gpu *nvme_gpu_init(const char *device);
GPUNVME_API int nvme_gpu_read(nvme_gpu *gpu, uint64_t lba, uint64_t blocks, void *address);
GPUNVME_API int nvme_gpu_read_async(
    nvme_gpu *gpu, uint64_t lba, uint64_t blocks, void *address, struct CUstream_st *stream);
GPUNVME_API int nvme_gpu_write(nvme_gpu *gpu, uint64_t lba, uint64_t blocks, const void *address);
GPUNVME_API int nvme_gpu_write_async(
    nvme_gpu *gpu, uint64_t lba, uint64_t blocks, const void *address, struct CUstream_st *stream);

/* The first failure of what was started and not waited for yet, or GPUNVME_OK. */
GPUNVME_API int nvme_gpu_synchronize(nvme_gpu *gpu);
GPUNVME_API void nvme_gpu_cleanup(nvme_gpu *gpu);

typedef struct nvme_read_request nvme_read_request;

/* Kinds by ranges of logical blocks. NULL if that fails. */
GPUNVME_API nvme_read_request *nvme_read_request_create(nvme_gpu *gpu);
GPUNVME_API int nvme_read_request_add_kind(
    nvme_read_request *request, int kind, uint64_t start_lba, uint64_t blocks, uint64_t element_bytes);
GPUNVME_API int read_nvme_kind(
    nvme_read_request *request, int kind, uint64_t index, uint64_t elements, void *address);
GPUNVME_API void nvme_read_request_destroy(nvme_read_request *request);

#ifdef __cplusplus
}
#endif
#endif
