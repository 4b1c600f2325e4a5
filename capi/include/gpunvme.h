/* gpunvme: NVMe storage driven by a GPU.
 *
 * Link with -lgpunvme (pkg-config gpunvme). The library starts a Java virtual machine in this process with the first
 * call that needs it, and keeps it until the process ends; see gpunvme_start.
 *
 * Every function may be called by any thread at any time. Functions that can fail return GPUNVME_OK (0) or above, or
 * a negative code of enum gpunvme_status. After a failure, gpunvme_last_error says what failed, where, and what to do
* next, for the calling thread. Handles are checked: a closed one gives GPUNVME_ERROR_CLOSED. Sizes, offsets and lengths
* are in bytes unless a name says blocks.
 * Device addresses are CUdeviceptr (or pointers of cudaMalloc). The library uses the memory in place; it must stay
* allocated until the call, or the request, is over. Host addresses are accepted in the same places, at the price of one
* more copy. Without a GPU everything works in host memory.
 *
 * The library prints nothing and never ends the process. The virtual machine runs with -Xrs: it takes no SIGINT,
 * SIGTERM or SIGHUP handler. It does use SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGPIPE, SIGXFSZ, SIGUSR2 and SIGRTMAX - 2 inside
 * its own code; docs/c-api.md says what happens to your own handlers.
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
struct CUevent_st;  /* a CUevent, which is a cudaEvent_t, points to one */

enum gpunvme_status {
  GPUNVME_OK = 0,
  GPUNVME_PENDING = 1,            /* not over yet; not a failure */
  GPUNVME_ERROR_INVALID = -1,     /* an argument is not possible, or out of range */
  GPUNVME_ERROR_NOT_FOUND = -2,   /* no such file, device, tensor, kind */
  GPUNVME_ERROR_PERMISSION = -3,  /* not allowed, or opened without GPUNVME_WRITE */
  GPUNVME_ERROR_IO = -4,          /* the device or the kernel failed, or the file is shorter than expected */
  GPUNVME_ERROR_NO_SPACE = -5,    /* no room for the data to write */
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
  GPUNVME_ERROR_BUSY = -16,    /* kernels or commands are at work in it still; the message says what ends them */
  GPUNVME_ERROR_INTERNAL = -99 /* a defect of the library; the message is worth a report */
};

/* ---- the library */

/* "0.1.0". Needs no virtual machine. */
GPUNVME_API const char *gpunvme_version(void);

/* The message of this thread's last failure; "" if there was none. Valid until this thread's next call. Needs no virtual
* machine.
 */
GPUNVME_API const char *gpunvme_last_error(void);

/* The errno of this thread's last failure; 0 if it had none. */
GPUNVME_API int gpunvme_last_errno(void);

/* Starts the virtual machine. Other calls start it by themselves; call this to choose the Java or its options.
 *
 * java_home: of a Java 25 or newer; NULL: GPUNVME_JAVA_HOME, JAVA_HOME, java on PATH, then the newest in /usr/lib/jvm.
 * options: more options of the virtual machine ("-Xmx1g"), count of them; NULL if 0.
 * If the process already has a virtual machine, the library uses it as it is. A second call does nothing and returns
* GPUNVME_OK. The jars are in GPUNVME_HOME, or next to the library.
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
 * accelerator: "gpu" (the first), "gpu:1" (as CUDA counts), the PCI address of a GPU ("0000:3b:00.0") or its UUID as nvidia-smi -L
 * writes it, "cpu" (the stand-in), "auto" or NULL: what the environment's GPUNVME_ACCELERATOR names, or else the first GPU, or else
 * the stand-in. Memory of other GPUs of this process is read into and written from, too: the storage is then opened for them as
 * well, over the same file or SSD.
 * flags: of enum gpunvme_open_flags.
 */
GPUNVME_API int gpunvme_open(const char *uri, const char *accelerator, uint32_t flags, gpunvme_storage **storage);

/* Ends running requests, which fail as cancelled, and closes the storage. NULL is fine. */
GPUNVME_API int gpunvme_close(gpunvme_storage *storage);

/*
 * The same storage for another accelerator, over the same open file or SSD, with queues of its own: for kernels, layers and memory of
 * that one. accelerator: as for gpunvme_open. Closing it leaves the first one open; closing the first one closes it.
 */
GPUNVME_API int gpunvme_storage_on(gpunvme_storage *storage, const char *accelerator, gpunvme_storage **other);

typedef struct gpunvme_info {
  uint64_t size;        /* bytes */
  uint64_t gpu_bytes;   /* accelerator memory that transfers may take, besides the caller's */
  uint32_t alignment;   /* offsets and lengths that are multiples of this need no staging; any alignment works */
  uint32_t block_bytes; /* bytes of a logical block of the device, the unit of LBAs; 512 for files, which have none */
  uint32_t gpu;         /* 1: addresses are device addresses; 0: the stand-in */
  uint32_t device;      /* CUDA's number of the GPU; 0 of the stand-in */
} gpunvme_info;

GPUNVME_API int gpunvme_get_info(gpunvme_storage *storage, gpunvme_info *info);

/* Reads or writes, and waits. */
GPUNVME_API int gpunvme_read(gpunvme_storage *storage, uint64_t offset, uint64_t address, uint64_t bytes);
GPUNVME_API int gpunvme_write(gpunvme_storage *storage, uint64_t offset, uint64_t address, uint64_t bytes);

/* When this returns, all written data is on stable storage. */
GPUNVME_API int gpunvme_flush(gpunvme_storage *storage);

typedef struct gpunvme_range {
  uint64_t offset;  /* in the storage */
  uint64_t address; /* device or host memory */
  uint64_t bytes;
} gpunvme_range;

/* Many ranges at once, in any order. If one of them fails, the call fails. The ranges are copied. */
GPUNVME_API int gpunvme_read_ranges(gpunvme_storage *storage, const gpunvme_range *ranges, size_t count);
GPUNVME_API int gpunvme_write_ranges(gpunvme_storage *storage, const gpunvme_range *ranges, size_t count);

/* Whether a transfer, or a wait for kernels, is to end early: not 0 if it is. It closes nothing that the call uses: closing waits
 * for the call. */
typedef int (*gpunvme_cancelled)(void *data);

/* The same for programs that may change their mind: the calling thread asks cancelled(data) every 10 ms or so while it waits, and
 * then ends the transfer, which fails as cancelled; a transfer of less than that asks nothing. cancelled may be NULL.
 */
GPUNVME_API int gpunvme_read_ranges_cancellable(
    gpunvme_storage *storage, const gpunvme_range *ranges, size_t count, gpunvme_cancelled cancelled, void *data);
GPUNVME_API int gpunvme_write_ranges_cancellable(
    gpunvme_storage *storage, const gpunvme_range *ranges, size_t count, gpunvme_cancelled cancelled, void *data);

/* The same without waiting. Each request is freed by gpunvme_request_free. */
GPUNVME_API int gpunvme_submit_read(
    gpunvme_storage *storage, const gpunvme_range *ranges, size_t count, gpunvme_request **request);
GPUNVME_API int gpunvme_submit_write(
    gpunvme_storage *storage, const gpunvme_range *ranges, size_t count, gpunvme_request **request);

/* In the order of a stream: later work in the stream sees the data of a read; a write takes the data that earlier work left. What an
* earlier call writes in whichever stream, from memory of whichever GPU, is there for a later read of the same bytes, or under a later
* write. So what lets a stream come to its write must not lie behind a transfer of the same bytes in another stream. The
* request is over when the storage has done its part. The memory of a read belongs to the stream until the stream has come to
* that point, too: gpunvme_request_free waits for it. NULL is CUDA's legacy default stream. A stream that is being captured
* is refused. Fails as unsupported on the stand-in.
 * All such calls of a storage share 8 pieces of 4 MiB of pinned memory, and wait while none is free. So if the stream waits for
* this thread, let it go on before a long transfer, or before many of them, not after.
 */
GPUNVME_API int gpunvme_submit_read_on_stream(gpunvme_storage *storage, uint64_t offset, uint64_t address,
    uint64_t bytes, struct CUstream_st *stream, gpunvme_request **request);
GPUNVME_API int gpunvme_submit_write_on_stream(gpunvme_storage *storage, uint64_t offset, uint64_t address,
    uint64_t bytes, struct CUstream_st *stream, gpunvme_request **request);

/* GPUNVME_OK if the request succeeded, GPUNVME_PENDING if it is running, or the code of its failure. */
GPUNVME_API int gpunvme_poll(gpunvme_request *request);

/* Waits for the request, for timeout_ns at most (UINT64_MAX: without a limit), and returns the same codes. */
GPUNVME_API int gpunvme_wait(gpunvme_request *request, uint64_t timeout_ns);

/* Asks a request to end soon. It fails as cancelled, unless it is over before. */
GPUNVME_API int gpunvme_cancel(gpunvme_request *request);

/* Cancels the request if it is running, waits until nothing uses its memory, and frees it. NULL is fine. */
GPUNVME_API int gpunvme_request_free(gpunvme_request *request);

typedef struct gpunvme_plan_info {
  uint64_t ios;            /* I/Os that would be done */
  uint64_t bytes;          /* bytes of all these I/Os */
  uint64_t bytes_overread; /* bytes read only because they are in the same blocks, or between ranges */
  uint64_t bytes_staged;   /* bytes that take one more copy on their way */
} gpunvme_plan_info;

/* Says what reading these ranges would do. Reads nothing. Of the addresses, only the alignment matters. */
GPUNVME_API int gpunvme_plan(
    gpunvme_storage *storage, const gpunvme_range *ranges, size_t count, gpunvme_plan_info *plan);

/* Texts: the call writes as much of the text as fits, with a terminating 0, and sets *needed to the bytes of the whole text
* with the 0. text may be NULL if capacity is 0; needed may be NULL.
 * stats: JSON. "paths" has the counts of each path. "memory" has the bytes that all of this process's storages on the same
* accelerator hold now: of the accelerator ("accelerator_bytes") and of pinned host memory ("pinned_bytes"). Memory of
* other GPUs counts with the paths, and not with "memory". Of a set,
* "members" has the counts of each member, and "slowest" the "name" of the slowest and "why"; else they are empty and null.
* explain: the path in use, why no better path is, and how to change that.
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

/* Memory that belongs to no storage: it stays until it is freed, whatever is closed before. When it is freed, no transfer may
* use it.
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

/* Many at once, one after the other in memory, which has `capacity` bytes. */
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

/* Names the layers that gpunvme_next_layer gives next, and reads them ahead. Does not wait. */
GPUNVME_API int gpunvme_prefetch_layers(
    gpunvme_layer_loader *loader, const uint64_t *offsets, const uint64_t *bytes, size_t count);

/* The next layer, in the ring. With a stream, the stream waits for the data; at the next call, the slot becomes free once the
* stream has done its work up to that call. Without a stream (NULL), this call waits for the data, and the next call frees the
* slot. CUDA's default stream is CU_STREAM_LEGACY ((CUstream)1) here, not NULL. GPUNVME_ERROR_NOT_FOUND if no layer is named
* any more.
 * If the data of a layer for a stream cannot be read, the stream goes on with whatever the slot contains. The next call of this
* function, or gpunvme_layer_loader_destroy, then waits for the stream and fails with the reason. The call after that goes on.
 */
GPUNVME_API int gpunvme_next_layer(
    gpunvme_layer_loader *loader, struct CUstream_st *stream, uint64_t *address, uint64_t *bytes);

/* The next layer for a stream that must not wait for it: this call waits for the data. At the next call, the slot becomes free
* once the stream has done its work up to that call. For programs that do not know every call of CUDA that is made beside the
* stream: one that allocates, or loads a kernel, waits for streams that wait, and keeps the data from arriving.
 */
GPUNVME_API int gpunvme_take_layer(
    gpunvme_layer_loader *loader, struct CUstream_st *stream, uint64_t *address, uint64_t *bytes);

/* Forgets the layers that are named and were not given, and ends their reads. */
GPUNVME_API int gpunvme_cancel_layers(gpunvme_layer_loader *loader);

/* JSON of the layers that were given, and that no stream uses any more: how many ("layers"), their "bytes", how long they were
* read ("read_seconds", of reads side by side the time that each added), and how long their takers waited ("wait_seconds"). And
* by which paths ("paths") what the loader reads was read since it was opened, by anybody: the "read_bytes" of each, and its
* "mode", such as who issues commands and where data goes. The text is as that of gpunvme_stats.
 */
GPUNVME_API int gpunvme_layer_loader_stats(gpunvme_layer_loader *loader, char *text, size_t capacity, size_t *needed);
GPUNVME_API int gpunvme_layer_loader_destroy(gpunvme_layer_loader *loader);

/* ---- weights */

typedef struct gpunvme_weights gpunvme_weights;

/* A model: a file or folder (safetensors, GGUF), or a device that holds one; docs/weights.md. */
GPUNVME_API int gpunvme_weights_open(const char *uri, const char *accelerator, gpunvme_weights **weights);

/* JSON: format, metadata, the names of the files, and tensors with name, dtype, shape, bytes, file and the offset of their first byte
 * in it, always in the same order.
 */
GPUNVME_API int gpunvme_weights_describe(gpunvme_weights *weights, char *text, size_t capacity, size_t *needed);

/* JSON: for each accelerator ("accelerators") by which paths ("paths") the model was read since it was opened, without its
 * headers: "read_bytes" that were asked for, and "overread_bytes" that lay in the same blocks or between them. The text is as
 * that of gpunvme_stats.
 */
GPUNVME_API int gpunvme_weights_stats(gpunvme_weights *weights, char *text, size_t capacity, size_t *needed);

/* How tensors are divided evenly into `parts`, as gpunvme load --rank does: the dimension of each tensor, or -1 if it stays whole.
 * rules: "rows" (dimension 0 where that is even), "megatron" (by the names of LLaMA-like models), or PATTERN=DIMENSION and
 * PATTERN=whole, one a line, of which the first whose pattern is found in a name counts. NULL: `dimensions` has what is wanted.
 * dimensions: `count` of them, one for each tensor, in the order of gpunvme_weights_describe.
 * GPUNVME_ERROR_INVALID if a tensor cannot be divided evenly along the dimension that a pattern or the caller names.
 */
GPUNVME_API int gpunvme_weights_shards(
    gpunvme_weights *weights, const char *rules, uint32_t parts, int32_t *dimensions, size_t count);

/* In place of a dimension: start and stop count bytes of the tensor as it is stored, of any type. */
#define GPUNVME_TENSOR_BYTES (-2)

typedef struct gpunvme_tensor_read {
  uint32_t tensor;    /* as counted by gpunvme_weights_describe, from 0 */
  int32_t dimension;  /* of the slice; -1: the whole tensor; or GPUNVME_TENSOR_BYTES */
  uint64_t start;     /* of the slice, elements of that dimension */
  uint64_t stop;      /* the first element after the slice */
  uint64_t address;   /* the target, contiguous */
  uint64_t capacity;  /* bytes of the target, at least those of the slice */
} gpunvme_tensor_read;

/* Reads tensors, or slices of them, straight to memory of the caller, and waits. Memory of several GPUs is filled at the same
 * time, whichever the model was opened for.
 */
GPUNVME_API int gpunvme_weights_read(gpunvme_weights *weights, const gpunvme_tensor_read *reads, size_t count);

/* A ring for layers that are made of tensors, whichever files of the model they are in. gpunvme_next_layer,
* gpunvme_cancel_layers and gpunvme_layer_loader_destroy take it as any other. The model stays open longer.
 */
GPUNVME_API int gpunvme_weights_layer_loader_init(gpunvme_weights *weights, uint64_t max_layer_bytes,
    uint32_t pipeline_depth, gpunvme_layer_loader **loader);

/* Names one layer of such a loader, after those that are named: tensors or slices, each of which goes to the place in the layer
* that its `address` says (0 is the layer's first byte). They must not overlap. name is for messages. Does not wait.
 */
GPUNVME_API int gpunvme_prefetch_tensors(
    gpunvme_layer_loader *loader, const char *name, const gpunvme_tensor_read *tensors, size_t count);
GPUNVME_API int gpunvme_weights_close(gpunvme_weights *weights);

/* ---- models that are larger than the accelerator's memory */

typedef struct gpunvme_layer_size {
  uint64_t stored;      /* bytes in a slot, where its tensors are as they are stored; without experts */
  uint64_t used;        /* bytes where it stays, as they are used */
  uint64_t unconverted; /* stored, of tensors that are converted before they are used, in the slot or not */
  uint64_t converted;   /* the most memory that the same tensors take while they are made and used */
  uint64_t experts;     /* stored, of which only those are read that a router chooses: in a slot of a ring of their own */
  uint64_t router;      /* of the parameter that scores them, as it is used: it stays where the layer does not */
} gpunvme_layer_size;

typedef struct gpunvme_layer_plan {
  uint64_t slot_bytes;        /* of one slot of the ring */
  uint64_t ring_bytes;        /* of all of it */
  uint64_t resident_bytes;    /* of the layers that stay */
  uint64_t converted_bytes;   /* while tensors of a layer are converted */
  uint64_t device_bytes;      /* the most that all this takes at a time */
  uint64_t pass_bytes;        /* read in each pass through the layers: for each token; experts come on top */
  uint64_t expert_slot_bytes; /* of one slot of the second ring, for all experts of any layer */
  uint64_t expert_ring_bytes; /* of all of that ring */
  uint64_t router_bytes;      /* of the routers of layers that are streamed */
  uint32_t slots;             /* of the ring; 0 if all layers stay */
  uint32_t reads;             /* layers that are read at a time while another one is used */
  uint32_t expert_slots;      /* of the second ring; 0 if no layer that is streamed has experts */
} gpunvme_layer_plan;

/* Plans which layers stay in memory, and the ring that the others are read through. Reads and allocates nothing.
 * layers: count of them (10000 at most); tensors begin at multiples of 512 bytes. experts and router are 0 of a layer
 * that is read as a whole.
 * budget: bytes for layers, rings and conversions; UINT64_MAX: all layers stay; 0: none stays, whatever the rings take.
 * slots: of the ring, 2..1024; 0: 4, or fewer where the budget has no room or layers that stay save more.
 * stays: count bytes, each of which becomes 1 if that layer stays, else 0; may be NULL.
 * GPUNVME_ERROR_INVALID if the budget is too small; the message says how much is enough.
 */
GPUNVME_API int gpunvme_plan_layers(const gpunvme_layer_size *layers, size_t count, uint64_t budget, uint32_t slots,
    gpunvme_layer_plan *plan, uint8_t *stays);

/* ---- floats of quantised tensors */

typedef struct gpunvme_quantized {
  const char *type;        /* of the elements, as gpunvme_weights_describe has it: Q4_0, Q8_0, Q4_K, Q5_K, Q6_K, I8, F8_E4M3, F8_E5M2 */
  uint64_t source;         /* the elements as they are stored, one row behind the other */
  const char *target_type; /* of the floats: F32, F16, BF16 */
  uint64_t target;         /* the floats, in the same order; a multiple of 16 */
  uint64_t rows;           /* a tensor of more dimensions is a matrix of more rows */
  uint64_t columns;        /* whole blocks of the type: multiples of 32 (Q4_0, Q8_0) or 256 (Q4_K, Q5_K, Q6_K) elements */
  uint64_t scales;         /* I8, F8_E4M3, F8_E5M2: F32s by which the elements are multiplied, a multiple of 4; 0: none */
  uint64_t block_rows;     /* rows and columns that have a scale in common, 1 at least; the scales of a row of blocks come one */
  uint64_t block_columns;  /* behind the other, and the last blocks of a row or a column may be cut. Of no use without scales */
} gpunvme_quantized;

/* Makes floats of quantised tensors, for instance of all those of a layer, where they are: in memory of the GPU, anybody's; host
* memory is refused. Without a GPU it is host memory, stream is NULL, and the floats are there when this returns. On a GPU this
* returns at once: kernels are in the stream (NULL: CUDA's legacy default stream) behind the work that is in it, and memory and
* scales have to stay until they are over.
 * The floats are bit for bit those of gguf.quants.dequantize of ggml's Python package, and elements of 8 bits become F32s and are
* multiplied by their scales; then they are rounded to the target's type, to the nearest even.
 * source is a multiple of 16 for Q4_K and Q5_K, of 2 for Q4_0, Q8_0 and Q6_K, and any for the others. GPUNVME_ERROR_UNSUPPORTED for
* types that are not in the list; GPUNVME_ERROR_INVALID for what is not aligned, no whole blocks, or overlaps; nothing is written then.
 * The first call loads the kernels, which waits for kernels that are running: call it with a count of 0 before you start one that
* waits for others.
 * accelerator: as for gpunvme_open.
 */
GPUNVME_API int gpunvme_dequantize(
    const char *accelerator, const gpunvme_quantized *tensors, size_t count, struct CUstream_st *stream);

/* ---- kernels that read and write SSDs by themselves: docs/device-library.md */

/* The folder for the compiler's -I: #include "gpunvme/gpunvme.cuh" is the device library. The text is as that of gpunvme_stats.
* Needs no virtual machine.
 */
GPUNVME_API int gpunvme_include_dir(char *text, size_t capacity, size_t *needed);

typedef struct gpunvme_kernel_storage gpunvme_kernel_storage;

/* Where the queues are. Completion queues of an SSD that is no embedded one are in GPU memory with VRAM_DATA, too. */
enum gpunvme_placement {
  GPUNVME_PLACEMENT_VRAM_DATA = 0, /* in host memory; the SSD reaches the GPU's memory for data and completions */
  GPUNVME_PLACEMENT_HOST = 1,      /* in host memory, all of them */
  GPUNVME_PLACEMENT_VRAM = 2       /* in GPU memory */
};

enum gpunvme_kernel_flags {
  GPUNVME_KERNELS_RECOVER = 1 /* recovery while kernels run: see gpunvme_kernel_storage_await */
};

typedef struct gpunvme_kernel_options {
  uint32_t placement;   /* of enum gpunvme_placement */
  uint32_t queue_pairs; /* on each SSD; 0: as many as are useful, and the SSD has */
  uint32_t depth;       /* commands in flight per queue pair, a multiple of 32; 0: as many as are useful */
  uint32_t buffers;     /* how many can be registered at a time, 1..65536; 0: 64 */
  uint32_t nsid;        /* the namespace of each SSD; 0: namespace 1 */
  uint32_t flags;       /* of enum gpunvme_kernel_flags; others are refused */
} gpunvme_kernel_options;

/* Queues for kernels on the SSDs of count storages, beside the storages' own. Kernels count SSDs in the order of the storages, each
 * once, where a stripe set counts as its SSDs, in turn. They use all of each namespace, whatever part of it the storage is, and can
 * write, even if the storage was opened without GPUNVME_WRITE: nobody sees their commands. All storages have the same accelerator,
 * and stay open longer.
 * options: NULL for all defaults; a member that is 0 has its default.
 * GPUNVME_ERROR_UNSUPPORTED of a storage that is on no SSD that this process drives, or is a replica, or a set with members that are
 * in pieces or sets themselves.
 */
GPUNVME_API int gpunvme_kernel_storage_open(gpunvme_storage *const *storages, size_t count,
    const gpunvme_kernel_options *options, gpunvme_kernel_storage **kernels);

/* Stops the kernels that are waited for, waits for them, and gives the queues back, with all handles. No other kernel uses it.
 * NULL is fine. If it fails, an SSD has not let go of its queues: nothing is freed, and nothing else can be done with kernels. Call it
 * again then, behind gpunvme_close of the storages at the latest.
 */
GPUNVME_API int gpunvme_kernel_storage_close(gpunvme_kernel_storage *kernels);

/* A handle for one of several kernels that run at once. gpunvme_kernel_storage_device_handle of it is another address, for that
 * kernel; ..._await, ..._await_event and ..._stop of it are about the kernels that were given this address. So they are stopped and
 * waited for without the others. All other calls of it are those of the storage; ..._stop of the storage stops all. Close it with
 * gpunvme_kernel_storage_close when its kernel is over, before or behind the storage: once that is closed, no other call of it is
 * possible. Make the handles of all kernels before the first is launched: it waits for those that run.
 */
GPUNVME_API int gpunvme_kernel_storage_handle(gpunvme_kernel_storage *kernels, gpunvme_kernel_storage **handle);

/* The device address of the struct gpunvme::Storage that kernels are given. */
GPUNVME_API int gpunvme_kernel_storage_device_handle(gpunvme_kernel_storage *kernels, uint64_t *address);

/* Registers memory that kernels read into and write from: of the GPU, the caller's or from gpunvme_allocate and
* gpunvme_memory_allocate. It stays allocated until it is unregistered, or the storage for kernels is closed.
 * number: kernels find the buffer at SSD i with storage->buffer(number, i); the lowest that no buffer has, or, while a kernel is
* waited for, that none ever had.
 * offset: where the first byte is in that buffer, which may begin before it: with its allocation, for one. Kernels add it to the
* offsets that they give to read and write. The buffer ends with the last byte.
 */
GPUNVME_API int gpunvme_kernel_storage_register(
    gpunvme_kernel_storage *kernels, uint64_t address, uint64_t bytes, uint32_t *number, uint64_t *offset);

/* Takes it back; the number may be another buffer's next. GPUNVME_ERROR_BUSY while a kernel is waited for, or commands may still
* move data: those that timed out or were stopped, or that no kernel waited for. gpunvme_kernel_storage_recover ends these.
 */
GPUNVME_API int gpunvme_kernel_storage_unregister(gpunvme_kernel_storage *kernels, uint32_t number);

/* Tells kernels where the bytes of a storage are: of a file on an SSD ("vfio:0000:01:00.0#1:/data"), a partition, a whole SSD,
* or a stripe set, whose layout is the file's member `set`.
* It is one of those that the storage for kernels was opened on. *address becomes the device address of a struct
* gpunvme::DeviceFile for read_file. Nobody changes the file meanwhile. It stays until gpunvme_kernel_storage_free, or the storage
* for kernels is closed. Make it before kernels are launched: it waits for those that run.
 */
GPUNVME_API int gpunvme_kernel_storage_file(gpunvme_kernel_storage *kernels, gpunvme_storage *file, uint64_t *address);

enum gpunvme_directory_flags {
  GPUNVME_DIRECTORY_SKIP = 1 /* leave out what kernels cannot be told of, instead of refusing the directory */
};

/* The same for the files below a directory of the ext4 or FAT32 file system on a storage: an SSD, a stripe set, a partition, or an
 * image that is a file there. Kernels find them by their paths from the directory on, or count through them. *address becomes the
 * device address of a struct gpunvme::DeviceDirectory.
 * path: of the directory, in UTF-8; "/" for all of the file system.
 * flags: of enum gpunvme_directory_flags; others are refused.
 * What kernels cannot be told of: data in an inode, encrypted or compressed data, pieces that begin with no block of the SSD, a
 * symbolic link to something else than a file, a device, a socket, a pipe, a folder that cannot be read (docs/device-library.md).
 * GPUNVME_ERROR_UNSUPPORTED names the first of them, unless they are left out. GPUNVME_ERROR_NOT_FOUND: no such directory.
 * GPUNVME_ERROR_FORMAT: no file system, or a damaged one. GPUNVME_ERROR_INVALID: more than 2^24 files or 4 GiB of table, too.
 */
GPUNVME_API int gpunvme_kernel_storage_directory(
    gpunvme_kernel_storage *kernels, gpunvme_storage *storage, const char *path, uint32_t flags, uint64_t *address);

/* JSON of what GPUNVME_DIRECTORY_SKIP left out of the directory at this address: how many ("total"), and a line for each of the
 * first with its path and the reason ("skipped", 1000 at most). The text is as that of gpunvme_stats.
 */
GPUNVME_API int gpunvme_kernel_storage_skipped(
    gpunvme_kernel_storage *kernels, uint64_t address, char *text, size_t capacity, size_t *needed);

/* Frees a file, a directory or an array (gpunvme_cache_array), which no kernel uses any more. */
GPUNVME_API int gpunvme_kernel_storage_free(gpunvme_kernel_storage *kernels, uint64_t address);

/* Waits for kernels that use the storage: until all work in a stream is over (NULL: CUDA's legacy default stream), or all work
* before an event, which was recorded. Call it after each launch, and no call of CUDA that waits before it: nothing else ends a
* kernel whose SSD does not answer.
 * The kernels are told to stop when an SSD is in trouble (GPUNVME_ERROR_IO), when timeout_ns is over (UINT64_MAX: no limit;
* GPUNVME_ERROR_TIMEOUT), or when cancelled(data) says so, which this thread asks every 10 ms or so (GPUNVME_ERROR_CANCELLED);
* cancelled may be NULL. Their reads and writes then end with gpunvme::status::kStopped, and this returns when they are over. If
* they do not end within 10 s, this fails, too (GPUNVME_ERROR_TIMEOUT), and every later call but closing with GPUNVME_ERROR_GONE.
 * After a failure call gpunvme_kernel_storage_recover before the next kernel.
 * With GPUNVME_KERNELS_RECOVER an SSD in trouble is recovered meanwhile and the kernels go on: they are told to stop only if it cannot
 * be brought back. Commands that were in flight are submitted again, once, by device calls that wait for one command; others end with
 * gpunvme::status::kAbortedByHost. Each kernel that runs must be waited for all the time.
 */
GPUNVME_API int gpunvme_kernel_storage_await(gpunvme_kernel_storage *kernels, struct CUstream_st *stream,
    uint64_t timeout_ns, gpunvme_cancelled cancelled, void *data);
GPUNVME_API int gpunvme_kernel_storage_await_event(gpunvme_kernel_storage *kernels, struct CUevent_st *event,
    uint64_t timeout_ns, gpunvme_cancelled cancelled, void *data);

/* Tells kernels to end their waits (not 0), or cancels that (0). When the last kernel that is waited for is over, it is cancelled
* by itself; whoever waits succeeds.
 */
GPUNVME_API int gpunvme_kernel_storage_stop(gpunvme_kernel_storage *kernels, int stop);

/* Makes queues usable again that have lost commands, or whose SSD failed. No kernel runs. After this, reads and writes that ended
* with kTimeout or kStopped move no more data. GPUNVME_ERROR_BUSY while a kernel is waited for.
 */
GPUNVME_API int gpunvme_kernel_storage_recover(gpunvme_kernel_storage *kernels);

/* How many recoveries have come to their end while kernels ran (GPUNVME_KERNELS_RECOVER), of all SSDs together, at any time, also
 * while kernels run.
 */
GPUNVME_API int gpunvme_kernel_storage_recoveries(gpunvme_kernel_storage *kernels, uint64_t *count);

/* JSON of the errors that kernels have met since the storage was opened: how many ("total"), and a line for each of the first
* ("errors", 1000 at most). No kernel runs. The text is as that of gpunvme_stats.
 */
GPUNVME_API int gpunvme_kernel_storage_errors(
    gpunvme_kernel_storage *kernels, char *text, size_t capacity, size_t *needed);

/* ---- arrays and matrices on SSDs that are larger than the GPU's memory, through a cache of pages: docs/page-cache.md */

typedef struct gpunvme_cache gpunvme_cache;

enum gpunvme_cache_flags {
  GPUNVME_CACHE_UNCOUNTED = 1, /* acquires of pages are not counted, and hits a little faster */
  GPUNVME_CACHE_VERIFY = 2     /* a page that comes again is compared with what it was, by a CRC-32C: for finding damage, and slow */
};

typedef struct gpunvme_cache_options {
  uint64_t bytes;      /* of pages in GPU memory (GPUNVME_PLACEMENT_HOST: in pinned host memory): at least 16 pages */
  uint64_t host_bytes; /* of pinned host memory between cache and SSD, for pages that are missed often: 0, or at least 16 pages */
  uint64_t timeout_ns; /* how long a page waits for a frame while others hold all in which it may be, up to an hour; 0: 10 s */
  uint32_t page_bytes; /* what one miss reads: a power of two from 512 to 64 KiB; 0: 4 KiB */
  uint32_t flags;      /* of enum gpunvme_cache_flags; others are refused */
} gpunvme_cache_options;

/* A cache for arrays of kernels, and for rows. It takes one of the buffers of the storage for kernels. Make it, its arrays and its
 * rows before kernels are launched. What kernels store is on the SSD once its page made room for another, or after
 * gpunvme_cache_flush; nobody else writes the bytes of an array meanwhile.
 */
GPUNVME_API int gpunvme_cache_open(
    gpunvme_kernel_storage *kernels, const gpunvme_cache_options *options, gpunvme_cache **cache);

/* Frees it with its arrays and rows; waits for kernels that move rows, and no other kernel uses it. NULL is fine. What was not flushed
 * is lost. Closing the storage for kernels closes it, too; the handle is freed by this call before or behind that.
 * GPUNVME_ERROR_BUSY while a kernel is waited for, or commands may still move data: gpunvme_kernel_storage_recover ends these.
 */
GPUNVME_API int gpunvme_cache_close(gpunvme_cache *cache);

/* Tells kernels of elements of a storage: of a file on an SSD, a partition, a whole SSD, a stripe set. *address becomes the device
 * address of a struct gpunvme::DeviceArray, which gpunvme_kernel_storage_free frees.
 * storage: one of those that the storage for kernels was opened on; it stays open as long as the cache.
 * offset: bytes before element 0, a multiple of element_bytes. count: elements, above 0.
 * element_bytes: a power of two, at most a page.
 * flags: GPUNVME_WRITE if kernels may store elements: the storage was opened with it, and is all there, in whole blocks.
 */
GPUNVME_API int gpunvme_cache_array(gpunvme_cache *cache, gpunvme_storage *storage, uint64_t offset, uint64_t count,
    uint32_t element_bytes, uint32_t flags, uint64_t *address);

/* Has everything that was stored written to the SSDs and made durable; waits for kernels that update rows, and no other kernel runs
 * that stores. Pages whose write fails stay in the cache, to be flushed again.
 * timeout_ns: how long it may take; UINT64_MAX: no limit.
 */
GPUNVME_API int gpunvme_cache_flush(gpunvme_cache *cache, uint64_t timeout_ns);

/* JSON of what the cache has counted, in pages, also while kernels run: "acquires", "hit_rate", "misses", "reads", "writes", and
 * more. The text is as that of gpunvme_stats.
 */
GPUNVME_API int gpunvme_cache_counters(gpunvme_cache *cache, char *text, size_t capacity, size_t *needed);

typedef struct gpunvme_rows gpunvme_rows;

/* A matrix of a storage whose rows lie one behind the other from offset on, which the GPU moves by their numbers through the cache.
 * storage and flags: as for gpunvme_cache_array. rows and row_bytes: any, above 0.
 */
GPUNVME_API int gpunvme_rows_open(gpunvme_cache *cache, gpunvme_storage *storage, uint64_t offset, uint64_t rows,
    uint64_t row_bytes, uint32_t flags, gpunvme_rows **matrix);

/* Waits for what was started. NULL is fine. Closing the cache closes it, too; the handle is freed by this call before or behind that. */
GPUNVME_API int gpunvme_rows_close(gpunvme_rows *matrix);

/* Copies rows to target, which is memory of the GPU: count times row_bytes bytes, those that the cache does not have from the SSD.
 * ids: device address of count signed 64-bit numbers of rows, in any order, some perhaps more than once; a multiple of 8.
 * It returns at once: a kernel is in the stream (NULL: CUDA's legacy default stream) behind the work that is in it, and the memory
 * stays until it is over. A row that does not come is filled with bytes FFh. That is told by the next call, which starts nothing then,
 * or by gpunvme_rows_synchronize: GPUNVME_ERROR_INVALID if there is no row of that number, else GPUNVME_ERROR_IO, _TIMEOUT, _BUSY (no frame) or _CANCELLED (stopped). Streams
 * that are being captured are refused.
 */
GPUNVME_API int gpunvme_rows_gather(
    gpunvme_rows *matrix, uint64_t ids, uint64_t count, uint64_t target, struct CUstream_st *stream);

/* Has rows read into the cache, without copying them. */
GPUNVME_API int gpunvme_rows_fetch(gpunvme_rows *matrix, uint64_t ids, uint64_t count, struct CUstream_st *stream);

/* Overwrites rows in the cache from memory of the GPU; gpunvme_cache_flush writes them to the SSD. Of a row that is named more than
 * once any of its values may be kept, or parts of several. */
GPUNVME_API int gpunvme_rows_update(
    gpunvme_rows *matrix, uint64_t ids, uint64_t count, uint64_t source, struct CUstream_st *stream);

/* Waits until all that was started is over, and tells what failed. */
GPUNVME_API int gpunvme_rows_synchronize(gpunvme_rows *matrix);

/*
 * ---- the same under the names of the first proposals: one device, counted in logical blocks
 * nvme_gpu_init opens a URI, or a block device such as "/dev/nvme0n1", for reading. It opens it for writing, too, if it is an
* embedded controller that loses its data when it is closed ("sim:..." without file=), or if the environment has
* GPUNVME_ALLOW_WRITE=1. The environment's GPUNVME_ACCELERATOR names the accelerator, as for gpunvme_open. nvme_gpu_init returns NULL if
* it fails (gpunvme_last_error). stream may be NULL: then neither the call nor any stream waits, and nvme_gpu_synchronize waits
* for everything that was started.
 */
typedef struct nvme_gpu nvme_gpu;

GPUNVME_API nvme_gpu *nvme_gpu_init(const char *device);
GPUNVME_API int nvme_gpu_read(nvme_gpu *gpu, uint64_t lba, uint64_t blocks, void *address);
GPUNVME_API int nvme_gpu_read_async(
    nvme_gpu *gpu, uint64_t lba, uint64_t blocks, void *address, struct CUstream_st *stream);
GPUNVME_API int nvme_gpu_write(nvme_gpu *gpu, uint64_t lba, uint64_t blocks, const void *address);
GPUNVME_API int nvme_gpu_write_async(
    nvme_gpu *gpu, uint64_t lba, uint64_t blocks, const void *address, struct CUstream_st *stream);

/* Waits for everything that was started; returns the first failure, or GPUNVME_OK. */
GPUNVME_API int nvme_gpu_synchronize(nvme_gpu *gpu);
GPUNVME_API void nvme_gpu_cleanup(nvme_gpu *gpu);

typedef struct nvme_read_request nvme_read_request;

/* Kinds by ranges of logical blocks. NULL if it fails. */
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
