// Storages for kernels, with the real library: on the stand-in what needs no kernel, and with a driver (the one that GPUNVME_LIBCUDA
// names, which may run kernels on the CPU, or the system's) kernels of capi/src/test/cuda/kernels.cu, whose PTX GPUNVME_TEST_PTX names.
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include "device.h"

#define SIZE ((uint64_t)4 << 20)
#define BLOCK 4096u
#define SEED 21
#define SSD "sim:size=4MiB,lba=4096,latency=0"
#define SECOND ((uint64_t)1000000000)
#define STOPPED 0x8002u // gpunvme::status::kStopped
#define ARGUMENT 0x8004u

static int on_gpu(void) {
  return strcmp(accelerator(), "cpu") != 0;
}

// ---- the driver, as a program of the user's has it

static void *driver;
static void *module;
static struct CUstream_st *stream;

static int driver_call(const char *name, uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
  int (*function)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t) = NULL;
  *(void **)&function = dlsym(driver, name);
  int code = function == NULL ? -1 : function(a, b, c, d, 0);
  if (code != 0) {
    printf("  %s: %d\n", name, code);
    check_failures++;
  }
  return code;
}

#define TO(pointer) ((uint64_t)(uintptr_t)(pointer))

static void *file_bytes(const char *path) {
  FILE *file = fopen(path, "rb");
  char *bytes = calloc(1, 1 << 20);
  if (file == NULL || fread(bytes, 1, (1 << 20) - 1, file) == 0) {
    printf("FAIL reading %s\n", path);
    exit(1);
  }
  fclose(file);
  return bytes;
}

static void load_kernels(void) {
  void *context = NULL;
  int device = 0;
  const char *library = getenv("GPUNVME_LIBCUDA"), *ptx = getenv("GPUNVME_TEST_PTX");
  driver = dlopen(library == NULL ? "libcuda.so.1" : library, RTLD_NOW);
  if (driver == NULL || ptx == NULL) {
    printf("FAIL loading kernels: %s\n", driver == NULL ? dlerror() : "GPUNVME_TEST_PTX names no file");
    exit(1);
  }
  void *image = file_bytes(ptx);
  EXPECT_CODE(0, driver_call("cuInit", 0, 0, 0, 0));
  EXPECT_CODE(0, driver_call("cuDeviceGet", TO(&device), 0, 0, 0));
  EXPECT_CODE(0, driver_call("cuDevicePrimaryCtxRetain", TO(&context), (uint64_t)device, 0, 0));
  EXPECT_CODE(0, driver_call("cuCtxSetCurrent", TO(context), 0, 0, 0));
  EXPECT_CODE(0, driver_call("cuModuleLoadDataEx", TO(&module), TO(image), 0, 0));
  EXPECT_CODE(0, driver_call("cuStreamCreateWithPriority", TO(&stream), 1, 0, 0));
  free(image);
}

static void launch(const char *name, unsigned threads, void **arguments) {
  int (*function)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **) = NULL;
  void *kernel = NULL;
  *(void **)&function = dlsym(driver, "cuLaunchKernel");
  EXPECT_CODE(0, driver_call("cuModuleGetFunction", TO(&kernel), TO(module), TO(name), 0));
  EXPECT_CODE(0, function(kernel, 1, 1, 1, threads, 1, 1, 0, stream, arguments, NULL));
}

// ---- what tests share

typedef struct rig {
  gpunvme_storage *storage;
  gpunvme_kernel_storage *kernels;
  uint64_t handle, data, offset, statuses; // the statuses, and behind them the bytes for kernels
  uint32_t number;
} rig;

static gpunvme_kernel_storage *open_kernels(gpunvme_storage *storage, uint32_t flags) {
  gpunvme_kernel_storage *kernels = NULL;
  const gpunvme_kernel_options options = {.queue_pairs = 1, .depth = 32, .flags = flags};
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_open(&storage, 1, &options, &kernels));
  return kernels;
}

static rig rig_with(const char *uri, uint32_t flags) {
  rig r = {.storage = open_or_end(uri, GPUNVME_WRITE)};
  fill_device(r.storage, SEED, SIZE);
  r.kernels = open_kernels(r.storage, flags);
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_device_handle(r.kernels, &r.handle));
  EXPECT_CODE(GPUNVME_OK, gpunvme_allocate(r.storage, 64 * BLOCK, &r.data));
  EXPECT_CODE(GPUNVME_OK, gpunvme_allocate(r.storage, BLOCK, &r.statuses));
  // Not from the allocation's first byte on.
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_register(r.kernels, r.data + 1024, 40 * BLOCK, &r.number, &r.offset));
  EXPECT(r.number == 0 && r.offset == 1024);
  return r;
}

static rig rig_of(const char *uri) {
  return rig_with(uri, 0);
}

static void end(rig *r) {
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_close(r->kernels));
  EXPECT_CODE(GPUNVME_OK, gpunvme_close(r->storage));
}

static void poison_statuses(rig *r) {
  uint8_t poison[BLOCK];
  memset(poison, 0xee, sizeof poison);
  EXPECT_CODE(GPUNVME_OK, gpunvme_copy_from_host(r->storage, r->statuses, poison, sizeof poison));
}

static void read_blocks(rig *r, uint64_t first, uint32_t count) {
  uint32_t ssd = 0;
  poison_statuses(r);
  launch("read_blocks", count, (void *[]){&r->handle, &ssd, &r->number, &r->offset, &first, &count, &r->statuses});
}

static uint32_t status_of(rig *r, uint32_t thread) {
  uint32_t all[BLOCK / 4];
  EXPECT_CODE(GPUNVME_OK, gpunvme_copy_to_host(r->storage, all, r->statuses, sizeof all));
  return all[thread];
}

static uint32_t with_status(rig *r, uint32_t threads, uint32_t status) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < threads; i++) {
    found += status_of(r, i) == status;
  }
  return found;
}

// ---- without a kernel

static void headers_are_where_it_says(void) {
  char folder[4096], file[4200], some[5] = "....";
  size_t needed = 0;
  EXPECT_CODE(GPUNVME_OK, gpunvme_include_dir(folder, sizeof folder, &needed));
  EXPECT(folder[0] == '/' && needed == strlen(folder) + 1);
  snprintf(file, sizeof file, "%s/gpunvme/gpunvme.cuh", folder);
  EXPECT(access(file, R_OK) == 0);
  EXPECT_CODE(GPUNVME_OK, gpunvme_include_dir(some, sizeof some, NULL));
  EXPECT(strlen(some) == 4 && strncmp(some, folder, 4) == 0);
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_include_dir(NULL, 5, NULL));
}

static void numbers_are_the_lowest_that_are_free(void) {
  rig r = rig_of(SSD);
  uint32_t number = 7;
  uint64_t offset = 7;
  EXPECT(r.handle != 0 && r.handle % 64 == 0);
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_register(r.kernels, r.statuses, BLOCK, &number, &offset));
  EXPECT(number == 1 && offset == 0);
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_unregister(r.kernels, 0));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kernel_storage_unregister(r.kernels, 0));
  EXPECT_ERROR("number 0");
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kernel_storage_unregister(r.kernels, UINT32_MAX));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_register(r.kernels, r.data, BLOCK, &number, &offset));
  EXPECT(number == 0);
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_recover(r.kernels));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_stop(r.kernels, 1));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_stop(r.kernels, 0));
  end(&r);
}

static void errors_say_what_where_and_why(void) {
  rig r = rig_of(SSD);
  gpunvme_kernel_storage *other = (gpunvme_kernel_storage *)&r;
  gpunvme_storage *twice[] = {r.storage, r.storage};
  gpunvme_kernel_options options = {.placement = 3};
  uint64_t offset = 7, address = 7;
  uint32_t number = 7;
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kernel_storage_open(&r.storage, 1, &options, &other));
  EXPECT_ERROR("placement 3");
  EXPECT(other == NULL);
  if (!on_gpu()) {
    options = (gpunvme_kernel_options){.placement = GPUNVME_PLACEMENT_VRAM};
    EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kernel_storage_open(&r.storage, 1, &options, &other));
    EXPECT_CODE(GPUNVME_ERROR_UNSUPPORTED, gpunvme_kernel_storage_await(r.kernels, NULL, 0, NULL, NULL));
  }
  options = (gpunvme_kernel_options){.depth = 33};
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kernel_storage_open(&r.storage, 1, &options, &other));
  options = (gpunvme_kernel_options){.buffers = 65537};
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kernel_storage_open(&r.storage, 1, &options, &other));
  options = (gpunvme_kernel_options){.flags = GPUNVME_KERNELS_RECOVER | 4};
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kernel_storage_open(&r.storage, 1, &options, &other));
  EXPECT_ERROR("flags 5h");
  options = (gpunvme_kernel_options){.nsid = 5};
  EXPECT(gpunvme_kernel_storage_open(&r.storage, 1, &options, &other) < 0 && other == NULL);
  EXPECT_ERROR("5");
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kernel_storage_open(twice, 2, NULL, &other));
  EXPECT_ERROR("twice");
  EXPECT_CODE(GPUNVME_ERROR_CLOSED, gpunvme_kernel_storage_open((gpunvme_storage **)&r.kernels, 1, NULL, &other));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kernel_storage_register(r.kernels, r.data, 0, &number, &offset));
  EXPECT(number == 0 && offset == 0);
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kernel_storage_register(r.kernels, r.data, 65 * BLOCK, &number, &offset));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kernel_storage_register(r.kernels, 0, 5, &number, &offset));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kernel_storage_register(r.kernels, r.data, UINT64_MAX, &number, &offset));
  if (on_gpu()) {
    EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kernel_storage_register(r.kernels, TO(&r), 5, &number, &offset));
    EXPECT_ERROR("host memory");
  }
  gpunvme_storage *stranger = open_or_end(SSD, 0);
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kernel_storage_file(r.kernels, stranger, &address));
  EXPECT(address == 0);
  EXPECT_CODE(GPUNVME_OK, gpunvme_close(stranger));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kernel_storage_free(r.kernels, 4096));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_close(r.kernels));
  EXPECT_CODE(GPUNVME_ERROR_CLOSED, gpunvme_kernel_storage_close(r.kernels));
  EXPECT_CODE(GPUNVME_ERROR_CLOSED, gpunvme_kernel_storage_recover(r.kernels));
  EXPECT_CODE(GPUNVME_ERROR_CLOSED, gpunvme_kernel_storage_register(r.kernels, r.data, BLOCK, &number, &offset));
  // With the storage, what kernels use is closed, too.
  gpunvme_kernel_storage *kernels = open_kernels(r.storage, 0);
  EXPECT_CODE(GPUNVME_OK, gpunvme_close(r.storage));
  EXPECT_CODE(GPUNVME_ERROR_CLOSED, gpunvme_kernel_storage_device_handle(kernels, &address));
  EXPECT_ERROR("was closed");
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_close(kernels));
}

static void handles_are_of_their_storage(void) {
  rig r = rig_of(SSD);
  gpunvme_kernel_storage *one = NULL, *other = NULL;
  uint64_t first = 0, second = 0, recoveries = 7, offset = 7;
  uint32_t number = 7;
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_handle(r.kernels, &one));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_handle(one, &other));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_device_handle(one, &first));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_device_handle(other, &second));
  EXPECT(first != 0 && second != 0 && first != second && first != r.handle && second != r.handle);
  // Calls that are not about its kernel are the storage's.
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_register(one, r.statuses, BLOCK, &number, &offset));
  EXPECT(number == 1);
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_unregister(r.kernels, 1));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_recover(one));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_recoveries(one, &recoveries));
  EXPECT(recoveries == 0);
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_stop(one, 1));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_close(one));
  EXPECT_CODE(GPUNVME_ERROR_CLOSED, gpunvme_kernel_storage_device_handle(one, &first));
  EXPECT_CODE(GPUNVME_ERROR_CLOSED, gpunvme_kernel_storage_close(one));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_device_handle(other, &second));
  // With the storage it is closed, too, and is given back some time.
  end(&r);
  EXPECT_CODE(GPUNVME_ERROR_CLOSED, gpunvme_kernel_storage_device_handle(other, &second));
  EXPECT_ERROR("was closed");
  EXPECT_CODE(GPUNVME_ERROR_CLOSED, gpunvme_kernel_storage_stop(other, 0));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_close(other));
}

static void closing_that_failed_is_tried_again(void) {
  rig r = rig_of("sim:size=4MiB,lba=4096,latency=0,faults=status=generic/internal-error on delete-sq");
  uint64_t address = 7;
  for (int i = 0; i < 2; i++) {
    EXPECT_CODE(GPUNVME_ERROR_IO, gpunvme_kernel_storage_close(r.kernels));
    EXPECT_ERROR("close the storages");
  }
  EXPECT_CODE(GPUNVME_ERROR_CLOSED, gpunvme_kernel_storage_device_handle(r.kernels, &address));
  EXPECT_CODE(GPUNVME_ERROR_IO, gpunvme_close(r.storage)); // it closes what is on it, too
  EXPECT_CODE(GPUNVME_ERROR_CLOSED, gpunvme_close(r.storage));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_close(r.kernels));
  EXPECT_CODE(GPUNVME_ERROR_CLOSED, gpunvme_kernel_storage_close(r.kernels));
}

static int file_systems_can_be_made(void) {
  return system("PATH=$PATH:/usr/sbin:/sbin; command -v mke2fs >/dev/null") == 0;
}

// A storage on a file system that has /set/deep/a.bin, of the device's first bytes, /set/b.bin and two links to nothing.
#define FOUND 30000

static gpunvme_storage *file_system(void) {
  char folder[300], command[2000], uri[400];
  uint8_t *bytes = malloc(FOUND);
  temporary(folder, sizeof folder);
  EXPECT(mkdtemp(folder) != NULL);
  snprintf(command, sizeof command, "cd %s && mkdir -p root/set/deep && ln -s nothing root/set/c && ln -s none root/set/deep/d && echo b >root/set/b.bin", folder);
  EXPECT(system(command) == 0);
  snprintf(uri, sizeof uri, "%s/root/set/deep/a.bin", folder);
  FILE *file = fopen(uri, "wb");
  fill(bytes, SEED, 0, FOUND);
  EXPECT(file != NULL && fwrite(bytes, 1, FOUND, file) == FOUND && fclose(file) == 0);
  free(bytes);
  snprintf(command, sizeof command, "cd %s && PATH=$PATH:/usr/sbin:/sbin mke2fs -q -t ext4 -d root image 8M >/dev/null && rm -r root", folder);
  EXPECT(system(command) == 0);
  snprintf(uri, sizeof uri, "sim:file=%s/image,latency=0", folder);
  gpunvme_storage *storage = open_or_end(uri, 0);
  // It stays open.
  snprintf(command, sizeof command, "rm -r %s", folder);
  EXPECT(system(command) == 0);
  return storage;
}

static void directories_are_told_to_kernels(void) {
  gpunvme_storage *storage = file_system();
  gpunvme_kernel_storage *kernels = open_kernels(storage, 0);
  uint64_t address = 7, file = 7, part = 0;
  size_t needed = 0;
  char text[2000] = "";
  EXPECT_CODE(GPUNVME_ERROR_UNSUPPORTED, gpunvme_kernel_storage_directory(kernels, storage, "/set", 0, &address));
  EXPECT(address == 0);
  EXPECT_ERROR("/set/");
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kernel_storage_directory(kernels, storage, "/set", 2, &address));
  EXPECT_ERROR("flags 2h");
  EXPECT_CODE(GPUNVME_ERROR_NOT_FOUND, gpunvme_kernel_storage_directory(kernels, storage, "/sets", 0, &address));
  EXPECT_ERROR("/sets");
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_directory(kernels, storage, "/set", GPUNVME_DIRECTORY_SKIP, &address));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_skipped(kernels, address, NULL, 0, &needed));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_skipped(kernels, address, text, sizeof text, NULL));
  EXPECT(needed == strlen(text) + 1 && strstr(text, "\"total\":2,") != NULL);
  EXPECT(strstr(text, "/set/c") != NULL && strstr(text, "/set/deep/d") != NULL);
  if (!on_gpu()) {
    EXPECT(address != 0 && *(const uint32_t *)(uintptr_t)address == 2);
  }
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_file(kernels, storage, &file));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kernel_storage_skipped(kernels, file, text, sizeof text, NULL));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_free(kernels, file));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_free(kernels, address));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kernel_storage_free(kernels, address));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kernel_storage_skipped(kernels, address, text, sizeof text, NULL));
  EXPECT(text[0] == 0);
  EXPECT_CODE(GPUNVME_ERROR_CLOSED, gpunvme_kernel_storage_directory(kernels, (gpunvme_storage *)kernels, "/", 0, &part));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_close(kernels));
  EXPECT_CODE(GPUNVME_OK, gpunvme_close(storage));
}

static void files_of_the_system_have_no_queues(void) {
  char path[300];
  temporary(path, sizeof path);
  int fd = mkstemp(path);
  EXPECT(fd >= 0 && write(fd, path, sizeof path) == sizeof path);
  close(fd);
  gpunvme_storage *storage = open_or_end(path, 0);
  gpunvme_kernel_storage *kernels = NULL;
  EXPECT_CODE(GPUNVME_ERROR_UNSUPPORTED, gpunvme_kernel_storage_open(&storage, 1, NULL, &kernels));
  EXPECT_CODE(GPUNVME_OK, gpunvme_close(storage));
  unlink(path);
}

// ---- with kernels

static void kernels_read(void) {
  rig r = rig_of(SSD);
  read_blocks(&r, 100, 32);
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_await(r.kernels, stream, 20 * SECOND, NULL, NULL));
  EXPECT(with_status(&r, 32, 0) == 32);
  EXPECT(holds(r.storage, r.data + r.offset, SEED, 100 * BLOCK, 32 * BLOCK));
  // What was not registered is not touched: the buffer has 40 blocks.
  read_blocks(&r, 0, 41);
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_await(r.kernels, stream, 20 * SECOND, NULL, NULL));
  EXPECT(with_status(&r, 41, 0) == 40 && status_of(&r, 40) == ARGUMENT);
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_unregister(r.kernels, r.number));
  read_blocks(&r, 0, 3);
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_await(r.kernels, stream, 20 * SECOND, NULL, NULL));
  EXPECT(with_status(&r, 3, ARGUMENT) == 3);
  end(&r);
}

static void memory_may_be_the_programs_own(void) {
  rig r = rig_of(SSD);
  uint64_t own = 0;
  EXPECT_CODE(0, driver_call("cuMemAlloc_v2", TO(&own), 10 * BLOCK, 0, 0));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_register(r.kernels, own, 10 * BLOCK, &r.number, &r.offset));
  EXPECT(r.number == 1);
  read_blocks(&r, 50, 10);
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_await(r.kernels, stream, UINT64_MAX, NULL, NULL));
  EXPECT(with_status(&r, 10, 0) == 10);
  EXPECT(holds(r.storage, own, SEED, 50 * BLOCK, 10 * BLOCK));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_unregister(r.kernels, 1));
  EXPECT_CODE(0, driver_call("cuMemFree_v2", own, 0, 0, 0));
  end(&r);
}

static void events_are_waited_for(void) {
  rig r = rig_of(SSD);
  struct CUevent_st *event = NULL;
  EXPECT_CODE(0, driver_call("cuEventCreate", TO(&event), 2, 0, 0));
  read_blocks(&r, 7, 32);
  EXPECT_CODE(0, driver_call("cuEventRecord", TO(event), TO(stream), 0, 0));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_await_event(r.kernels, event, 20 * SECOND, NULL, NULL));
  EXPECT(holds(r.storage, r.data + r.offset, SEED, 7 * BLOCK, 32 * BLOCK));
  EXPECT_CODE(0, driver_call("cuEventDestroy_v2", TO(event), 0, 0, 0)); // it is the program's still
  end(&r);
}

static void several_ssds_are_counted_in_their_order(void) {
  gpunvme_storage *storages[2];
  gpunvme_kernel_storage *kernels = NULL;
  uint64_t handle = 0, data = 0, offset = 0, statuses = 0, first = 5;
  uint32_t number = 0, count = 4;
  for (uint64_t i = 0; i < 2; i++) {
    storages[i] = open_or_end(SSD, GPUNVME_WRITE);
    fill_device(storages[i], SEED + i, SIZE);
  }
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_open(storages, 2, NULL, &kernels));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_device_handle(kernels, &handle));
  EXPECT_CODE(GPUNVME_OK, gpunvme_memory_allocate(accelerator(), 16 * BLOCK, &data));
  EXPECT_CODE(GPUNVME_OK, gpunvme_memory_allocate(accelerator(), BLOCK, &statuses));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_register(kernels, data, 16 * BLOCK, &number, &offset));
  for (uint32_t ssd = 0; ssd < 2; ssd++) {
    launch("read_blocks", count, (void *[]){&handle, &ssd, &number, &offset, &first, &count, &statuses});
    EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_await(kernels, stream, 20 * SECOND, NULL, NULL));
    EXPECT(holds(storages[0], data, SEED + ssd, first * BLOCK, count * BLOCK));
  }
  EXPECT_CODE(GPUNVME_OK, gpunvme_close(storages[1])); // closes what is on it, too
  EXPECT_CODE(GPUNVME_ERROR_CLOSED, gpunvme_kernel_storage_recover(kernels));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_close(kernels));
  EXPECT_CODE(GPUNVME_OK, gpunvme_memory_free(accelerator(), data));
  EXPECT_CODE(GPUNVME_OK, gpunvme_memory_free(accelerator(), statuses));
  EXPECT_CODE(GPUNVME_OK, gpunvme_close(storages[0]));
}

static void files_are_read_by_their_bytes(void) {
  rig r = rig_of(SSD);
  uint64_t file = 0, from = 12345, bytes = 50000, end_of_buffer = r.offset + 40 * BLOCK;
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_file(r.kernels, r.storage, &file));
  EXPECT(file != 0);
  launch("read_bytes", 1, (void *[]){&r.handle, &file, &r.number, &r.offset, &from, &bytes, &end_of_buffer, &r.statuses});
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_await(r.kernels, stream, 20 * SECOND, NULL, NULL));
  EXPECT(status_of(&r, 0) == 0);
  EXPECT(holds(r.storage, r.data + r.offset, SEED, from, bytes));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_free(r.kernels, file));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kernel_storage_free(r.kernels, file));
  end(&r);
}

static void files_are_found_by_their_paths(void) {
  const char *path = "deep/a.bin";
  gpunvme_storage *storage = file_system();
  gpunvme_kernel_storage *kernels = open_kernels(storage, 0);
  uint64_t handle = 0, directory = 0, data = 0, offset = 0, statuses = 0, name = 0, bytes = FOUND, size = 16 * BLOCK;
  uint32_t number = 0, status = 7;
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_directory(kernels, storage, "set/", GPUNVME_DIRECTORY_SKIP, &directory));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_device_handle(kernels, &handle));
  EXPECT_CODE(GPUNVME_OK, gpunvme_allocate(storage, size, &data));
  EXPECT_CODE(GPUNVME_OK, gpunvme_allocate(storage, BLOCK, &statuses));
  EXPECT_CODE(GPUNVME_OK, gpunvme_allocate(storage, BLOCK, &name));
  EXPECT_CODE(GPUNVME_OK, gpunvme_copy_from_host(storage, name, path, strlen(path) + 1));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_register(kernels, data, size, &number, &offset));
  launch("read_found", 1, (void *[]){&handle, &directory, &name, &number, &offset, &bytes, &size, &statuses});
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_await(kernels, stream, 20 * SECOND, NULL, NULL));
  EXPECT_CODE(GPUNVME_OK, gpunvme_copy_to_host(storage, &status, statuses, sizeof status));
  EXPECT(status == 0);
  EXPECT(holds(storage, data + offset, SEED, 0, bytes));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_close(kernels)); // frees the directory, too
  EXPECT_CODE(GPUNVME_OK, gpunvme_close(storage));
}

// An SSD that never answers the third read.
#define DEAF "sim:size=4MiB,lba=4096,latency=0,faults=drop skip on read nth=3"

static void recovers(rig *r) {
  EXPECT_CODE(GPUNVME_ERROR_BUSY, gpunvme_kernel_storage_unregister(r->kernels, r->number));
  EXPECT_ERROR("recover");
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_recover(r->kernels));
  read_blocks(r, 9, 32);
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_await(r->kernels, stream, 20 * SECOND, NULL, NULL));
  EXPECT(with_status(r, 32, 0) == 32);
  EXPECT(holds(r->storage, r->data + r->offset, SEED, 9 * BLOCK, 32 * BLOCK));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_unregister(r->kernels, r->number));
  end(r);
}

// The controller of these fails with the fifth read.
#define FAILING "sim:size=4MiB,lba=4096,latency=0,faults=cfs on read nth=5"

static void an_ssd_in_trouble_stops_the_kernel(void) {
  rig r = rig_of(FAILING);
  read_blocks(&r, 0, 32);
  EXPECT_CODE(GPUNVME_ERROR_IO, gpunvme_kernel_storage_await(r.kernels, stream, 60 * SECOND, NULL, NULL));
  EXPECT_ERROR("in trouble");
  recovers(&r);
}

static void kernels_go_on_while_their_ssd_is_recovered(void) {
  rig r = rig_with(FAILING, GPUNVME_KERNELS_RECOVER);
  uint64_t recoveries = 7;
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_recoveries(r.kernels, &recoveries));
  EXPECT(recoveries == 0);
  read_blocks(&r, 3, 32);
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_await(r.kernels, stream, 60 * SECOND, NULL, NULL));
  EXPECT(with_status(&r, 32, 0) == 32);
  EXPECT(holds(r.storage, r.data + r.offset, SEED, 3 * BLOCK, 32 * BLOCK));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_recoveries(r.kernels, &recoveries));
  EXPECT(recoveries == 1);
  end(&r);
}

// Each reads a block that comes late; the first is stopped.
static void kernels_with_handles_are_stopped_alone(void) {
  rig r = rig_of("sim:size=4MiB,lba=4096,latency=0,faults=late=2s on read count=2");
  gpunvme_kernel_storage *handles[2] = {NULL, NULL};
  struct CUstream_st *first = stream, *streams[2] = {stream, NULL};
  uint32_t ssd = 0, count = 1;
  EXPECT_CODE(0, driver_call("cuStreamCreateWithPriority", TO(&streams[1]), 1, 0, 0));
  poison_statuses(&r);
  for (uint64_t i = 0; i < 2; i++) {
    EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_handle(r.kernels, &handles[i]));
  }
  for (uint64_t i = 0; i < 2; i++) {
    uint64_t handle = 0, offset = r.offset + i * BLOCK, block = 9 + i, status = r.statuses + i * sizeof(uint32_t);
    EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_device_handle(handles[i], &handle));
    stream = streams[i];
    launch("read_blocks", 1, (void *[]){&handle, &ssd, &r.number, &offset, &block, &count, &status});
  }
  stream = first;
  EXPECT_CODE(GPUNVME_ERROR_TIMEOUT, gpunvme_kernel_storage_await(handles[0], streams[0], SECOND / 100, NULL, NULL));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_await(handles[1], streams[1], 60 * SECOND, NULL, NULL));
  EXPECT(status_of(&r, 0) == STOPPED && status_of(&r, 1) == 0);
  EXPECT(holds(r.storage, r.data + r.offset + BLOCK, SEED, 10 * BLOCK, BLOCK));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_close(handles[0]));
  EXPECT_CODE(0, driver_call("cuStreamDestroy_v2", TO(streams[1]), 0, 0, 0));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_recover(r.kernels));
  end(&r);
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_close(handles[1]));
}

static void a_limit_stops_the_kernel(void) {
  rig r = rig_of(DEAF);
  size_t needed = 0;
  char text[2000];
  read_blocks(&r, 0, 8);
  EXPECT_CODE(GPUNVME_ERROR_TIMEOUT, gpunvme_kernel_storage_await(r.kernels, stream, 5 * SECOND, NULL, NULL));
  EXPECT_ERROR("after 5000 ms");
  EXPECT(with_status(&r, 8, 0) == 7 && with_status(&r, 8, STOPPED) == 1);
  for (int i = 0; i < 2; i++) { // a call that had no room takes nothing away
    EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_errors(r.kernels, i == 0 ? NULL : text, i == 0 ? 0 : sizeof text, &needed));
  }
  EXPECT(strstr(text, "\"total\":1,") != NULL && strstr(text, "did not complete") != NULL);
  recovers(&r);
}

static int after_a_while(void *asked) {
  return ++*(int *)asked > 400;
}

static void whoever_asked_for_it_is_asked(void) {
  rig r = rig_of(DEAF);
  int asked = 0;
  read_blocks(&r, 0, 8);
  EXPECT_CODE(GPUNVME_ERROR_CANCELLED, gpunvme_kernel_storage_await(r.kernels, stream, UINT64_MAX, after_a_while, &asked));
  EXPECT(asked == 401 && with_status(&r, 8, STOPPED) == 1);
  recovers(&r);
}

// Set once the main thread waits.
static int waits;

static int waiting(void *data) {
  (void)data;
  __atomic_store_n(&waits, 1, __ATOMIC_RELEASE);
  return 0;
}

// ---- caches and rows

#define ROW 1000u
#define ROWS (SIZE / ROW)

typedef struct matrix {
  rig r;
  gpunvme_cache *cache;
  gpunvme_rows *rows;
  uint64_t ids, memory;
} matrix;

static matrix matrix_of(const char *uri) {
  matrix m = {.r = rig_of(uri)};
  const gpunvme_cache_options options = {.bytes = 64 * BLOCK};
  EXPECT_CODE(GPUNVME_OK, gpunvme_cache_open(m.r.kernels, &options, &m.cache));
  EXPECT_CODE(GPUNVME_OK, gpunvme_rows_open(m.cache, m.r.storage, 0, ROWS, ROW, GPUNVME_WRITE, &m.rows));
  EXPECT_CODE(GPUNVME_OK, gpunvme_allocate(m.r.storage, BLOCK, &m.ids));
  EXPECT_CODE(GPUNVME_OK, gpunvme_allocate(m.r.storage, 64 * BLOCK, &m.memory));
  return m;
}

static void set_ids(matrix *m, const int64_t *ids, size_t count) {
  EXPECT_CODE(GPUNVME_OK, gpunvme_copy_from_host(m->r.storage, m->ids, ids, count * sizeof *ids));
}

static void expect_rows(matrix *m, const int64_t *ids, size_t count, int changed) {
  uint8_t got[8 * ROW], expected[ROW];
  EXPECT_CODE(GPUNVME_OK, gpunvme_rows_synchronize(m->rows));
  EXPECT_CODE(GPUNVME_OK, gpunvme_copy_to_host(m->r.storage, got, m->memory, count * ROW));
  for (size_t i = 0; i < count; i++) {
    fill(expected, SEED, (uint64_t)ids[i] * ROW, ROW);
    for (size_t k = 0; changed && k < ROW; k++) {
      expected[k] ^= 0x55;
    }
    EXPECT(memcmp(got + i * ROW, expected, ROW) == 0);
  }
}

static void rows_are_gathered_and_updated(void) {
  matrix m = matrix_of(SSD);
  const int64_t ids[5] = {0, 4000, 17, (int64_t)ROWS - 1, 17};
  uint8_t all[4 * ROW];
  char text[1000];
  set_ids(&m, ids, 5);
  EXPECT_CODE(GPUNVME_OK, gpunvme_rows_fetch(m.rows, m.ids, 5, stream));
  EXPECT_CODE(GPUNVME_OK, gpunvme_rows_gather(m.rows, m.ids, 5, m.memory, stream));
  expect_rows(&m, ids, 5, 0);
  EXPECT_CODE(GPUNVME_OK, gpunvme_copy_to_host(m.r.storage, all, m.memory, sizeof all));
  for (size_t k = 0; k < sizeof all; k++) {
    all[k] ^= 0x55;
  }
  EXPECT_CODE(GPUNVME_OK, gpunvme_copy_from_host(m.r.storage, m.memory, all, sizeof all));
  EXPECT_CODE(GPUNVME_OK, gpunvme_rows_update(m.rows, m.ids, 4, m.memory, stream));
  EXPECT_CODE(GPUNVME_OK, gpunvme_rows_gather(m.rows, m.ids, 5, m.memory, stream));
  expect_rows(&m, ids, 5, 1);
  EXPECT_CODE(GPUNVME_OK, gpunvme_cache_flush(m.cache, 60 * SECOND));
  EXPECT_CODE(GPUNVME_OK, gpunvme_cache_counters(m.cache, text, sizeof text, NULL));
  EXPECT(strstr(text, "\"write_failures\":0") != NULL && strstr(text, "\"writes\":0,") == NULL);
  EXPECT_CODE(GPUNVME_OK, gpunvme_rows_close(m.rows));
  EXPECT_CODE(GPUNVME_OK, gpunvme_cache_close(m.cache));
  EXPECT_CODE(GPUNVME_ERROR_CLOSED, gpunvme_rows_synchronize(m.rows));
  uint8_t row[ROW];
  gpunvme_range range = {.offset = 4000 * ROW, .address = TO(row), .bytes = ROW};
  EXPECT_CODE(GPUNVME_OK, gpunvme_read_ranges(m.r.storage, &range, 1));
  EXPECT(memcmp(row, all + ROW, ROW) == 0);
  end(&m.r);
}

static void rows_that_fail_are_told(void) {
  matrix m = matrix_of(SSD ",faults=status=media/unrecovered-read-error dnr on read lba=100");
  const int64_t there = 3, wrong = (int64_t)ROWS, damaged = 100 * BLOCK / ROW + 1;
  set_ids(&m, &wrong, 1);
  EXPECT_CODE(GPUNVME_OK, gpunvme_rows_gather(m.rows, m.ids, 1, m.memory, stream));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_rows_synchronize(m.rows));
  EXPECT_ERROR("row 4194 (of 1 that failed): there are rows 0 to 4193");
  set_ids(&m, &damaged, 1);
  EXPECT_CODE(GPUNVME_OK, gpunvme_rows_gather(m.rows, m.ids, 1, m.memory, stream));
  EXPECT_CODE(GPUNVME_ERROR_IO, gpunvme_rows_synchronize(m.rows));
  EXPECT_ERROR("Unrecovered Read Error");
  set_ids(&m, &there, 1);
  EXPECT_CODE(GPUNVME_OK, gpunvme_rows_gather(m.rows, m.ids, 1, m.memory, stream));
  expect_rows(&m, &there, 1, 0);

  uint8_t host[ROW];
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_rows_gather(m.rows, m.ids + 4, 1, m.memory, stream));
  EXPECT_ERROR("a multiple of 8");
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_rows_gather(m.rows, m.ids, 1, TO(host), stream));
  EXPECT_ERROR("is not memory of the GPU");
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_rows_gather(m.rows, m.ids, UINT64_MAX / 8, m.memory, stream));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_rows_fetch(m.rows, m.ids, BLOCK, stream));
  EXPECT_CODE(GPUNVME_OK, gpunvme_rows_gather(m.rows, 0, 0, 0, stream));
  // The storage for kernels closes all of it.
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_close(m.r.kernels));
  EXPECT_CODE(GPUNVME_ERROR_CLOSED, gpunvme_rows_synchronize(m.rows));
  EXPECT_CODE(GPUNVME_OK, gpunvme_rows_close(m.rows));
  EXPECT_CODE(GPUNVME_OK, gpunvme_cache_close(m.cache));
  EXPECT_CODE(GPUNVME_OK, gpunvme_close(m.r.storage));
}

static void caches_are_as_they_are_asked_for(void) {
  rig r = rig_of(SSD);
  gpunvme_cache *cache = NULL;
  gpunvme_cache_options options = {.bytes = 64 * BLOCK, .flags = 4};
  uint64_t address = 0;
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_cache_open(r.kernels, &options, &cache));
  EXPECT_ERROR("flags 4h");
  options.flags = GPUNVME_CACHE_UNCOUNTED;
  options.bytes = BLOCK;
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_cache_open(r.kernels, &options, &cache));
  EXPECT_ERROR("it has at least 65536");
  options.bytes = 64 * BLOCK;
  options.page_bytes = 3000;
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_cache_open(r.kernels, &options, &cache));
  options.page_bytes = 65536;
  options.bytes = UINT64_MAX;
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_cache_open(r.kernels, &options, &cache));
  options.page_bytes = 8192;
  options.bytes = 64 * BLOCK;
  options.host_bytes = 1;
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_cache_open(r.kernels, &options, &cache));
  options.host_bytes = 64 * BLOCK;
  options.flags |= GPUNVME_CACHE_VERIFY;
  EXPECT_CODE(GPUNVME_OK, gpunvme_cache_open(r.kernels, &options, &cache));
  EXPECT_CODE(GPUNVME_OK, gpunvme_cache_array(cache, r.storage, 16, 100, 8, 0, &address));
  EXPECT(address != 0);
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_cache_array(cache, r.storage, 16, 100, 12, 0, &address));
  EXPECT_ERROR("elements of 12 bytes");
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_cache_array(cache, r.storage, 16, SIZE, 8, 0, &address));
  EXPECT_CODE(GPUNVME_OK, gpunvme_cache_array(cache, r.storage, 16, 100, 8, 0, &address));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_free(r.kernels, address));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kernel_storage_free(r.kernels, address));
  if (!on_gpu()) {
    gpunvme_rows *rows = NULL;
    EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_rows_open(cache, r.storage, 0, 10, 10, 0, &rows));
    EXPECT_ERROR("rows are gathered by kernels of a GPU");
  }
  EXPECT_CODE(GPUNVME_OK, gpunvme_cache_close(cache));
  end(&r);
}

// Until the main thread waits, and some time longer: the reads that are answered are over then.
static void until_it_waits(void) {
  while (!__atomic_load_n(&waits, __ATOMIC_ACQUIRE)) {
    usleep(1000);
  }
  usleep(2000000);
}

static void *stop(void *kernels) {
  until_it_waits();
  EXPECT_CODE(GPUNVME_ERROR_BUSY, gpunvme_kernel_storage_recover(kernels));
  EXPECT_CODE(GPUNVME_ERROR_BUSY, gpunvme_kernel_storage_unregister(kernels, 0));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_stop(kernels, 1));
  return NULL;
}

static void another_thread_may_stop_it(void) {
  waits = 0;
  rig r = rig_of(DEAF);
  pthread_t thread;
  read_blocks(&r, 0, 8);
  EXPECT(pthread_create(&thread, NULL, stop, r.kernels) == 0);
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_await(r.kernels, stream, 60 * SECOND, waiting, NULL));
  pthread_join(thread, NULL);
  EXPECT(with_status(&r, 8, STOPPED) == 1);
  recovers(&r);
}

static void *close_it(void *kernels) {
  until_it_waits();
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_close(kernels));
  return NULL;
}

static void closing_stops_it(void) {
  waits = 0;
  rig r = rig_of(DEAF);
  pthread_t thread;
  read_blocks(&r, 0, 8);
  EXPECT(pthread_create(&thread, NULL, close_it, r.kernels) == 0);
  EXPECT_CODE(GPUNVME_ERROR_CANCELLED, gpunvme_kernel_storage_await(r.kernels, stream, 60 * SECOND, waiting, NULL));
  EXPECT_ERROR("was closed");
  pthread_join(thread, NULL);
  EXPECT(with_status(&r, 8, STOPPED) == 1);
  EXPECT_CODE(GPUNVME_OK, gpunvme_close(r.storage));
}

// Closing a handle stops its kernel, too, and so does closing the storage below it.
static void closing_stops_those_with_a_handle(void) {
  for (int whole = 0; whole < 2; whole++) {
    waits = 0;
    rig r = rig_of(DEAF);
    gpunvme_kernel_storage *handle = NULL;
    pthread_t thread;
    EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_handle(r.kernels, &handle));
    EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_device_handle(handle, &r.handle));
    read_blocks(&r, 0, 8);
    EXPECT(pthread_create(&thread, NULL, close_it, whole ? r.kernels : handle) == 0);
    EXPECT_CODE(GPUNVME_ERROR_CANCELLED, gpunvme_kernel_storage_await(handle, stream, 60 * SECOND, waiting, NULL));
    EXPECT_ERROR("was closed");
    pthread_join(thread, NULL);
    EXPECT(with_status(&r, 8, STOPPED) == 1);
    EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_close(whole ? handle : r.kernels));
    EXPECT_CODE(GPUNVME_OK, gpunvme_close(r.storage));
  }
}

int main(void) {
  RUN(headers_are_where_it_says);
  RUN(numbers_are_the_lowest_that_are_free);
  RUN(errors_say_what_where_and_why);
  RUN(handles_are_of_their_storage);
  RUN(closing_that_failed_is_tried_again);
  if (file_systems_can_be_made()) {
    RUN(directories_are_told_to_kernels);
  } else {
    puts("SKIP directories_are_told_to_kernels: no mke2fs; e2fsprogs has it");
  }
  RUN(files_of_the_system_have_no_queues);
  RUN(caches_are_as_they_are_asked_for);
  if (on_gpu()) {
    load_kernels();
    RUN(rows_are_gathered_and_updated);
    RUN(rows_that_fail_are_told);
    RUN(kernels_read);
    RUN(memory_may_be_the_programs_own);
    RUN(events_are_waited_for);
    RUN(several_ssds_are_counted_in_their_order);
    RUN(files_are_read_by_their_bytes);
    if (file_systems_can_be_made()) {
      RUN(files_are_found_by_their_paths);
    }
    RUN(an_ssd_in_trouble_stops_the_kernel);
    RUN(kernels_go_on_while_their_ssd_is_recovered);
    RUN(kernels_with_handles_are_stopped_alone);
    RUN(a_limit_stops_the_kernel);
    RUN(whoever_asked_for_it_is_asked);
    RUN(another_thread_may_stop_it);
    RUN(closing_stops_it);
    RUN(closing_stops_those_with_a_handle);
  }
  return check_failed_tests != 0;
}
