// Calls in the order of a CUDA stream.
#include "suite.h"

enum { SIZE = 1 << 20 };

static CUstream stream_of(unsigned flags) {
  void *stream = NULL;
  if (cuda.StreamCreateWithPriority == NULL || cuda.StreamCreateWithPriority(&stream, flags, 0) != 0) {
    give_up("no stream can be made");
  }
  return (CUstream)stream;
}

static bool synchronized(CUstream stream) { return cuda.StreamSynchronize((void *)stream) == 0; }

// The arguments of one call; they live until the stream comes to it.
struct call {
  size_t size;
  off_t file, buffer;
  ssize_t done;
};

// NVIDIA's library makes calls on streams in compatibility mode with the threads of execution.parallel_io.
void cufile_threads(void) {
  configure("", "\"execution\": {\"parallel_io\": true, \"max_io_threads\": 4, \"max_io_queue_depth\": 128,"
                " \"min_io_threshold_size_kb\": 8192, \"max_request_parallelism\": 4}");
}

// A library or a machine without streams says so once.
static CUfileError_t supported(CUfileError_t error) {
  if (error.err == CU_FILE_ASYNC_NOT_SUPPORTED) {
    is_true("supported", false, "calls on streams", "CU_FILE_ASYNC_NOT_SUPPORTED");
    give_up("calls on streams are not supported");
  }
  return error;
}

static CUfileError_t start_read(CUfileHandle_t handle, void *base, struct call *c, CUstream stream) {
  return supported(cufile.ReadAsync(handle, base, &c->size, &c->file, &c->buffer, &c->done, stream));
}

static CUfileError_t start_write(CUfileHandle_t handle, void *base, struct call *c, CUstream stream) {
  return supported(cufile.WriteAsync(handle, base, &c->size, &c->file, &c->buffer, &c->done, stream));
}

static void done_is(const char *id, ssize_t done, ssize_t expected) {
  is_true(id, done == expected, text("%zd", expected), transferred_text((struct transferred){done, 0}));
}

static void reads(void) {
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, SIZE));
  for (int registered = 0; registered < 2; registered++) {
    for (int known = 0; known < 2; known++) {
      const char *kind = text("%s-%s", registered ? "registered" : "plain", known ? "known-stream" : "new-stream");
      char *buffer = allocate(2 * SIZE);
      if (registered) {
        SUCCEEDS(text("%s-register", kind), cufile.BufRegister(buffer, 2 * SIZE, 0));
      }
      CUstream stream = stream_of(1);
      if (known) {
        SUCCEEDS(text("%s-stream-register", kind), cufile.StreamRegister(stream, 0));
      }
      struct call c = {SIZE, 0, 0, -77};
      SUCCEEDS(text("%s-read", kind), start_read(handle, buffer, &c, stream));
      is_number(text("%s-synchronize", kind), synchronized(stream), 1);
      done_is(text("%s-bytes", kind), c.done, SIZE);
      is_pattern(text("%s-data", kind), buffer, 1, 0, SIZE);
      struct call odd = {54321, 4097, 333, -77};
      SUCCEEDS(text("%s-unaligned", kind), start_read(handle, buffer, &odd, stream));
      synchronized(stream);
      done_is(text("%s-unaligned-bytes", kind), odd.done, 54321);
      is_pattern(text("%s-unaligned-data", kind), buffer + 333, 1, 4097, 54321);
      if (known) {
        SUCCEEDS(text("%s-stream-deregister", kind), cufile.StreamDeregister(stream));
      }
    }
  }
}

static void writes(void) {
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, 4096));
  char *buffer = allocate(SIZE);
  CUstream stream = stream_of(1);
  put_pattern(buffer, 2, 0, SIZE);
  struct call c = {SIZE, 0, 0, -77};
  SUCCEEDS("write", start_write(handle, buffer, &c, stream));
  is_number("synchronize", synchronized(stream), 1);
  done_is("bytes", c.done, SIZE);
  is_number("file", file_has("file", 2, 0, SIZE), 1);
  put_pattern(buffer + 77, 3, 123, 9999);
  struct call odd = {9999, 123, 77, -77};
  SUCCEEDS("unaligned", start_write(handle, buffer, &odd, stream));
  synchronized(stream);
  done_is("unaligned-bytes", odd.done, 9999);
  is_number("unaligned-file", file_has("file", 3, 123, 9999), 1);
  is_number("unaligned-around", file_has("file", 2, 0, 123) && file_has("file", 2, 123 + 9999, 4096), 1);
}

static void flags(void) {
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, SIZE));
  char *buffer = allocate(SIZE);
  SUCCEEDS("register", cufile.BufRegister(buffer, SIZE, 0));
  for (unsigned all = 0; all <= 15; all++) {
    CUstream stream = stream_of(1);
    SUCCEEDS(text("%u-register", all), cufile.StreamRegister(stream, all));
    struct call c = {65536, 8192, 4096, -77};
    fill(buffer, 0, SIZE);
    SUCCEEDS(text("%u-read", all), start_read(handle, buffer, &c, stream));
    synchronized(stream);
    done_is(text("%u-bytes", all), c.done, 65536);
    is_pattern(text("%u-data", all), buffer + 4096, 1, 8192, 65536);
    SUCCEEDS(text("%u-deregister", all), cufile.StreamDeregister(stream));
    cuda.StreamDestroy_v2((void *)stream);
  }
  CUstream stream = stream_of(1);
  CUfileError_t error = cufile.StreamRegister(stream, 16);
  observe("16", error_text(error));
  error = cufile.StreamRegister(stream, 0xFFFF);
  observe("65535", error_text(error));
}

static void aligned_flag(void) {
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, SIZE));
  char *buffer = allocate(SIZE);
  CUstream stream = stream_of(1);
  SUCCEEDS("register", cufile.StreamRegister(stream, 15));
  struct call c = {999, 1, 3, -77};
  CUfileError_t error = start_read(handle, buffer, &c, stream);
  observe("unaligned-against-the-promise", error_text(error));
  synchronized(stream);
  observe("unaligned-against-the-promise-bytes", transferred_text((struct transferred){c.done, 0}));
}

// ---- Arguments that change between the call and its execution

// A word in pinned memory that a stream waits for: functions of the host would wait for each other.
static volatile unsigned *gate;

static void open_gate(void) { __atomic_store_n(gate, 1, __ATOMIC_RELEASE); }

// Opens it after some time, in case that a call waits for the stream.
static void *opens_later(void *unused) {
  (void)unused;
  sleep(3);
  open_gate();
  return NULL;
}

static void hold(CUstream stream) {
  void *word = NULL;
  if (cuda.MemHostAlloc == NULL || cuda.MemHostAlloc(&word, 4096, 3) != 0) {
    give_up("no pinned memory");
  }
  gate = word;
  *gate = 0;
  if (cuda.StreamWaitValue32_v2 == NULL || cuda.StreamWaitValue32_v2((void *)stream, (cuda_address)word, 1, 0) != 0) {
    give_up("a stream cannot wait for a word here");
  }
  pthread_t later;
  pthread_create(&later, NULL, opens_later, NULL);
}

// The stream is held, a read is given to it, an argument is changed, the stream goes on.
static void changed(const char *name, unsigned stream_flags, int which, bool judged) {
  CUfileHandle_t handle = handle_of(new_file(name, O_RDWR, 1, SIZE));
  char *buffer = allocate(SIZE);
  SUCCEEDS(text("%s-buffer-register", name), cufile.BufRegister(buffer, SIZE, 0));
  CUstream stream = stream_of(1);
  SUCCEEDS(text("%s-register", name), cufile.StreamRegister(stream, stream_flags));
  hold(stream);
  struct call c = {65536, 0, 0, -77};
  double began = seconds_now();
  SUCCEEDS(text("%s-read", name), start_read(handle, buffer, &c, stream));
  is_true(text("%s-returns-at-once", name), seconds_now() - began < 2, "back before the stream goes on",
          seconds_now() - began < 2 ? "back before the stream goes on" : "back after it");
  observe(text("%s-result-before", name), c.done == -77 ? "not written" : "written");
  size_t size = 65536, file = 0, at = 0;
  if (which == 0) {
    c.size = 32768;
    size = 32768;
  } else if (which == 1) {
    c.file = 131072;
    file = 131072;
  } else if (which == 2) {
    c.buffer = 262144;
    at = 262144;
  }
  open_gate();
  is_number(text("%s-synchronize", name), synchronized(stream), 1);
  if (judged) {
    done_is(text("%s-bytes", name), c.done, (ssize_t)size);
    is_pattern(text("%s-data", name), buffer + at, 1, file, size);
  } else {
    observe(text("%s-bytes", name), transferred_text((struct transferred){c.done, 0}));
    observe(text("%s-data", name), has_pattern(buffer + at, 1, file, 32768) ? "of the changed argument" : "not of the changed argument");
  }
}

static void late_size(void) { changed("smaller-size", 0, 0, true); }
static void late_file(void) { changed("other-file-offset", 0, 1, true); }
static void late_buffer(void) { changed("other-buffer-offset", 0, 2, true); }
static void fixed_size(void) { changed("fixed-size", CU_FILE_STREAM_FIXED_FILE_SIZE, 0, false); }
static void fixed_file(void) { changed("fixed-file-offset", CU_FILE_STREAM_FIXED_FILE_OFFSET, 1, false); }
static void fixed_buffer(void) { changed("fixed-buffer-offset", CU_FILE_STREAM_FIXED_BUF_OFFSET, 2, false); }
static void none_changed(void) { changed("nothing", 15, 3, true); }

// ---- Order

static void order(void) {
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, SIZE));
  CUstream stream = stream_of(1);
  SUCCEEDS("register", cufile.StreamRegister(stream, 0));
  // Copy to the device, write it, read it to another place, copy from there: each needs the one before.
  char *first = allocate(SIZE), *second = allocate(SIZE), *bytes = malloc(SIZE), *back = malloc(SIZE);
  int wrong = 0;
  for (int i = 0; i < 10; i++) {
    pattern(bytes, 50 + (uint32_t)i, 0, SIZE);
    struct call out = {SIZE, 0, 0, -77}, in = {SIZE, 0, 0, -77};
    if (memory == DEVICE) {
      cuda.MemcpyHtoDAsync_v2((cuda_address)first, bytes, SIZE, (void *)stream);
    } else {
      memcpy(first, bytes, SIZE);
    }
    wrong += start_write(handle, first, &out, stream).err != CU_FILE_SUCCESS;
    wrong += start_read(handle, second, &in, stream).err != CU_FILE_SUCCESS;
    if (memory == DEVICE) {
      cuda.MemcpyDtoHAsync_v2(back, (cuda_address)second, SIZE, (void *)stream);
    }
    wrong += !synchronized(stream);
    if (memory == HOST) {
      memcpy(back, second, SIZE);
    }
    wrong += out.done != SIZE || in.done != SIZE || memcmp(back, bytes, SIZE) != 0;
  }
  is_number("copy-write-read-copy", wrong, 0);
}

static void two_streams(void) {
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, SIZE));
  CUstream held = stream_of(1), free_one = stream_of(1);
  char *first = allocate(SIZE), *second = allocate(SIZE);
  // The first transfer of a stream may wait for others, for the memory that it takes.
  SUCCEEDS("register-held", cufile.StreamRegister(held, 0));
  SUCCEEDS("register-free", cufile.StreamRegister(free_one, 0));
  hold(held);
  struct call one = {SIZE, 0, 0, -77}, two = {SIZE, 0, 0, -77};
  double began = seconds_now();
  SUCCEEDS("held", start_read(handle, first, &one, held));
  SUCCEEDS("free", start_read(handle, second, &two, free_one));
  is_number("free-synchronize", synchronized(free_one), 1);
  observe("free-goes-on", seconds_now() - began < 2 ? "before the held one" : "after it");
  done_is("free-bytes", two.done, SIZE);
  open_gate();
  is_number("held-synchronize", synchronized(held), 1);
  done_is("held-bytes", one.done, SIZE);
  is_pattern("held-data", first, 1, 0, SIZE);
}

static void null_stream(void) {
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, SIZE));
  char *buffer = allocate(SIZE);
  observe("register", error_text(cufile.StreamRegister(NULL, 0)));
  struct call c = {SIZE, 0, 0, -77};
  CUfileError_t error = start_read(handle, buffer, &c, NULL);
  observe("read", error_text(error));
  if (error.err == CU_FILE_SUCCESS) {
    cuda.StreamSynchronize(NULL);
    done_is("bytes", c.done, SIZE);
    is_pattern("data", buffer, 1, 0, SIZE);
  }
  observe("deregister", error_text(cufile.StreamDeregister(NULL)));
}

static void registration(void) {
  CUstream stream = stream_of(1);
  open_driver();
  SUCCEEDS("register", cufile.StreamRegister(stream, 0));
  observe("twice", error_text(cufile.StreamRegister(stream, 0)));
  SUCCEEDS("deregister", cufile.StreamDeregister(stream));
  observe("deregister-twice", error_text(cufile.StreamDeregister(stream)));
  CUstream other = stream_of(1);
  observe("deregister-unknown", error_text(cufile.StreamDeregister(other)));
  SUCCEEDS("register-again", cufile.StreamRegister(stream, 15));
  SUCCEEDS("deregister-again", cufile.StreamDeregister(stream));
}

static void registration_closed(void) {
  CUstream stream = stream_of(1);
  observe("register", error_text(cufile.StreamRegister(stream, 0)));
  observe("use-count", text("%ld", cufile.UseCount()));
}

static void bad_arguments(void) {
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, SIZE));
  char *buffer = allocate(SIZE);
  CUstream stream = stream_of(1);
  struct call c = {4096, 0, 0, -77};
  CUfileError_t error = start_read(NULL, buffer, &c, stream);
  is_true("null-handle-refused", error.err != CU_FILE_SUCCESS || (synchronized(stream) && c.done < 0), "an error, or one in the result",
          text("%s, %zd", error_text(error), c.done));
  observe("null-handle", error_text(error));
  error = start_read(handle, NULL, &c, stream);
  is_true("null-buffer-refused", error.err != CU_FILE_SUCCESS || (synchronized(stream) && c.done < 0), "an error, or one in the result",
          text("%s, %zd", error_text(error), c.done));
  observe("null-buffer", error_text(error));
  error = cufile.ReadAsync(handle, buffer, NULL, &c.file, &c.buffer, &c.done, stream);
  is_true("null-size-refused", error.err != CU_FILE_SUCCESS, "an error", error_text(error));
  observe("null-size", error_text(error));
  error = cufile.ReadAsync(handle, buffer, &c.size, NULL, &c.buffer, &c.done, stream);
  is_true("null-file-offset-refused", error.err != CU_FILE_SUCCESS, "an error", error_text(error));
  observe("null-file-offset", error_text(error));
  error = cufile.ReadAsync(handle, buffer, &c.size, &c.file, NULL, &c.done, stream);
  is_true("null-buffer-offset-refused", error.err != CU_FILE_SUCCESS, "an error", error_text(error));
  observe("null-buffer-offset", error_text(error));
  error = cufile.ReadAsync(handle, buffer, &c.size, &c.file, &c.buffer, NULL, stream);
  is_true("null-result-refused", error.err != CU_FILE_SUCCESS, "an error", error_text(error));
  observe("null-result", error_text(error));
}

static void results(void) {
  CUfileHandle_t handle = handle_of(new_file("file", O_RDONLY, 1, SIZE + 100));
  char *buffer = allocate(2 * SIZE);
  CUstream stream = stream_of(1);
  struct call tail = {2 * SIZE, 0, 0, -77}, behind = {4096, 4 * SIZE, 0, -77}, negative = {4096, -4096, 0, -77}, write = {4096, 0, 0, -77},
              none = {0, 0, 0, -77};
  SUCCEEDS("straddling-the-end", start_read(handle, buffer, &tail, stream));
  synchronized(stream);
  done_is("straddling-the-end-bytes", tail.done, SIZE + 100);
  SUCCEEDS("behind-the-end", start_read(handle, buffer, &behind, stream));
  synchronized(stream);
  done_is("behind-the-end-bytes", behind.done, 0);
  CUfileError_t error = start_read(handle, buffer, &negative, stream);
  synchronized(stream);
  is_true("negative-offset-refused", error.err != CU_FILE_SUCCESS || negative.done < 0, "an error, or one in the result",
          text("%s, %s", error_text(error), transferred_text((struct transferred){negative.done, 0})));
  observe("negative-offset", text("%s, %s", error_text(error), transferred_text((struct transferred){negative.done, 0})));
  error = start_write(handle, buffer, &write, stream);
  observe("write-to-read-only-synchronize", synchronized(stream) ? "the stream is well" : "the stream has an error");
  is_true("write-to-read-only-refused", error.err != CU_FILE_SUCCESS || write.done < 0, "an error, or one in the result",
          text("%s, %s", error_text(error), transferred_text((struct transferred){write.done, 0})));
  observe("write-to-read-only", text("%s, %s", error_text(error), transferred_text((struct transferred){write.done, 0})));
  error = start_read(handle, buffer, &none, stream);
  synchronized(stream);
  observe("no-bytes", text("%s, %s", error_text(error), transferred_text((struct transferred){none.done, 0})));
  struct call after = {4096, 0, 0, -77};
  SUCCEEDS("after-errors", start_read(handle, buffer, &after, stream));
  synchronized(stream);
  done_is("after-errors-bytes", after.done, 4096);
}

static void many(void) {
  enum { COUNT = 64 };
  static struct call calls[COUNT];
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, COUNT * 65536));
  char *buffer = allocate(COUNT * 65536);
  CUstream stream = stream_of(1);
  SUCCEEDS("register", cufile.StreamRegister(stream, 15));
  int failed = 0, wrong = 0;
  for (int i = 0; i < COUNT; i++) {
    int from = (i * 29 + 3) % COUNT;
    calls[i] = (struct call){65536, from * 65536L, i * 65536L, -77};
    failed += start_read(handle, buffer, &calls[i], stream).err != CU_FILE_SUCCESS;
  }
  is_number("64-submitted", failed, 0);
  is_number("synchronize", synchronized(stream), 1);
  const char *first = "none";
  for (int i = 0; i < COUNT; i++) {
    if (calls[i].done != 65536 && wrong == 0) {
      first = text("number %d: %s", i, transferred_text((struct transferred){calls[i].done, 0}));
    }
    wrong += calls[i].done != 65536 || !has_pattern(buffer + i * 65536L, 1, (size_t)((i * 29 + 3) % COUNT) * 65536, 65536);
  }
  is_number("64-right", wrong, 0);
  observe("64-first-not-whole", first);
  SUCCEEDS("deregister", cufile.StreamDeregister(stream));
}

static void destroyed_stream(void) {
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, SIZE));
  char *buffer = allocate(SIZE);
  for (int i = 0; i < 10; i++) {
    CUstream stream = stream_of(1);
    SUCCEEDS(text("register-%d", i), cufile.StreamRegister(stream, 0));
    struct call c = {SIZE, 0, 0, -77};
    SUCCEEDS(text("read-%d", i), start_read(handle, buffer, &c, stream));
    synchronized(stream);
    done_is(text("bytes-%d", i), c.done, SIZE);
    SUCCEEDS(text("deregister-%d", i), cufile.StreamDeregister(stream));
    is_number(text("destroy-%d", i), cuda.StreamDestroy_v2((void *)stream), 0);
  }
}

static void no_threads(void) {
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, 65536));
  CUstream stream = stream_of(1);
  struct call c = {65536, 0, 0, -77};
  observe("read", error_text(start_read(handle, allocate(65536), &c, stream)));
  synchronized(stream);
  observe("bytes", transferred_text((struct transferred){c.done, 0}));
}

enum { WITH = USES_MEMORY | USES_CUDA };

const struct group stream_groups[] = {
    {"stream.reads", "reads; registered streams and memory, and not", reads, WITH, cufile_threads},
    {"stream.writes", "writes", writes, WITH, cufile_threads},
    {"stream.flags", "each of the 16 sums of flags, and others", flags, WITH, cufile_threads},
    {"stream.aligned-flag", "unaligned arguments on a stream whose arguments are to be aligned", aligned_flag, WITH | MAY_CRASH, cufile_threads},
    {"stream.late-size", "the size is read when the stream comes to it", late_size, WITH, cufile_threads},
    {"stream.late-file-offset", "so is the file offset", late_file, WITH, cufile_threads},
    {"stream.late-buffer-offset", "so is the buffer offset", late_buffer, WITH, cufile_threads},
    {"stream.fixed-size", "a fixed size that changes", fixed_size, WITH, cufile_threads},
    {"stream.fixed-file-offset", "a fixed file offset that changes", fixed_file, WITH, cufile_threads},
    {"stream.fixed-buffer-offset", "a fixed buffer offset that changes", fixed_buffer, WITH, cufile_threads},
    {"stream.held", "a call on a stream that is held does not wait", none_changed, WITH, cufile_threads},
    {"stream.order", "after what is before it on the stream", order, WITH, cufile_threads},
    {"stream.two", "one stream does not hold another", two_streams, WITH, cufile_threads},
    {"stream.null", "the null stream", null_stream, WITH, cufile_threads},
    {"stream.registration", "twice, unknown", registration, USES_CUDA, cufile_threads},
    {"stream.registration-closed", "a registration while the driver is closed", registration_closed, USES_CUDA, cufile_threads},
    {"stream.arguments", "null pointers", bad_arguments, WITH | MAY_CRASH, cufile_threads},
    {"stream.results", "errors and short counts in the result", results, WITH, cufile_threads},
    {"stream.many", "64 calls on one stream", many, WITH, cufile_threads},
    {"stream.destroy", "streams that are made and destroyed", destroyed_stream, WITH, cufile_threads},
    {"stream.no-threads", "without threads in the configuration, as it is by default", no_threads, WITH, NULL},
    {0},
};
