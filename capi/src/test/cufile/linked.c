// A program as others write it: compiled with NVIDIA's header and linked with NVIDIA's library, which LD_LIBRARY_PATH replaces.
// Its arguments: the folder that the library is to come from, and one for files.
#include <cufile.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SIZE = 1 << 20 };

static int wrong;

static void expect(const char *what, long long is, long long should) {
  if (is != should) {
    printf("  %s: %lld, not %lld\n", what, is, should);
    wrong = 1;
  }
}

int main(int count, char **arguments) {
  if (count != 3) {
    return 2;
  }
  Dl_info where;
  if (dladdr((void *)cuFileRead, &where) == 0 || strncmp(where.dli_fname, arguments[1], strlen(arguments[1])) != 0) {
    printf("  cuFileRead is that of %s\n", where.dli_fname);
    return 1;
  }
  char path[4096], *from = aligned_alloc(4096, SIZE), *to = aligned_alloc(4096, SIZE);
  snprintf(path, sizeof path, "%s/linked.bin", arguments[2]);
  for (int i = 0; i < SIZE; i++) {
    from[i] = (char)(i * 31 + (i >> 12));
  }
  memset(to, 0, SIZE);
  expect("open", cuFileDriverOpen().err, CU_FILE_SUCCESS);
  CUfileDrvProps_t properties;
  expect("properties", cuFileDriverGetProperties(&properties).err, CU_FILE_SUCCESS);
  CUfileDescr_t description = {.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD};
  description.handle.fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  CUfileHandle_t handle;
  expect("handle", cuFileHandleRegister(&handle, &description).err, CU_FILE_SUCCESS);
  expect("buffer", cuFileBufRegister(to, SIZE, 0).err, CU_FILE_SUCCESS);
  expect("write", cuFileWrite(handle, from, SIZE, 0, 0), SIZE);
  expect("read", cuFileRead(handle, to, SIZE, 0, 0), SIZE);
  expect("bytes", memcmp(from, to, SIZE), 0);
  expect("short read", cuFileRead(handle, to, SIZE, SIZE - 100, 0), 100);

  CUfileBatchHandle_t batch;
  CUfileIOParams_t entries[4];
  CUfileIOEvents_t events[4];
  memset(entries, 0, sizeof entries);
  memset(to, 0, SIZE);
  expect("batch", cuFileBatchIOSetUp(&batch, 4).err, CU_FILE_SUCCESS);
  for (int i = 0; i < 4; i++) {
    entries[i].mode = CUFILE_BATCH;
    entries[i].u.batch.devPtr_base = to;
    entries[i].u.batch.devPtr_offset = entries[i].u.batch.file_offset = i * (SIZE / 4);
    entries[i].u.batch.size = SIZE / 4;
    entries[i].fh = handle;
    entries[i].opcode = CUFILE_READ;
    entries[i].cookie = &entries[i];
  }
  expect("submit", cuFileBatchIOSubmit(batch, 4, entries, 0).err, CU_FILE_SUCCESS);
  for (unsigned done = 0, rounds = 0; done < 4 && rounds < 100; rounds++) {
    unsigned n = 4 - done;
    expect("status", cuFileBatchIOGetStatus(batch, 1, &n, events, NULL).err, CU_FILE_SUCCESS);
    for (unsigned i = 0; i < n; i++) {
      expect("state of an entry", events[i].status, CUFILE_COMPLETE);
      expect("bytes of an entry", (long long)events[i].ret, SIZE / 4);
    }
    done += n;
  }
  expect("bytes of a batch", memcmp(from, to, SIZE), 0);
  cuFileBatchIODestroy(batch);

  expect("buffer off", cuFileBufDeregister(to).err, CU_FILE_SUCCESS);
  cuFileHandleDeregister(handle);
  expect("close", cuFileDriverClose().err, CU_FILE_SUCCESS);
  unlink(path);
  return wrong;
}
