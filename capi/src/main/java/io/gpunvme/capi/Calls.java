package io.gpunvme.capi;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.CallersContext;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.models.StreamPlan;
import io.gpunvme.nvme.driver.ShutdownGuard;
import io.gpunvme.storage.layer.LoadedLayer;
import io.gpunvme.storage.plan.Plan;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/**
 * The functions of {@code struct table}, as C calls them: pointers are segments of length 0, and no
 * exception leaves. Safe for all threads.
 */
final class Calls {
  /** {@code sizeof(failure)}. */
  static final long FAILURE = 2048;

  private static final String AUTO = "auto";

  private static final int DESCRIBE = 2;
  private static final int LAYER_STATS = 3;
  private static final int KERNEL_ERRORS = 4;
  private static final int CACHE_COUNTERS = 5;
  private static final int WEIGHTS_STATS = 6;
  private static final int EXPLAIN = 1;

  private final Handles handles = new Handles();
  private final LibraryMachine machine = new LibraryMachine();

  /** What a function does. */
  interface Body {
    int run() throws Throwable;
  }

  private interface Action {
    void run() throws Throwable;
  }

  /** No exception leaves it: that would end the process. */
  static int codeOf(MemorySegment failure, Body body) {
    try {
      return body.run();
    } catch (Throwable e) {
      try {
        return CapiStatus.fail(CTypes.at(failure, FAILURE), e);
      } catch (Throwable second) {
        return CapiStatus.failWithoutMemory(failure.address());
      }
    }
  }

  /** For whatever may call CUDA, which leaves its own context current. */
  private int call(MemorySegment failure, Action action) {
    return codeOf(
        failure,
        () -> {
          try (CallersContext _ = machine.keepCallersContext()) {
            action.run();
          } catch (Throwable e) {
            throw ShutdownGuard.ended() ? closedByTheEnd(e) : e;
          }
          return CapiStatus.OK;
        });
  }

  /** Whatever a call makes of controllers that were shut down under its hands. */
  private static ClosedHandleException closedByTheEnd(Throwable e) {
    ClosedHandleException closed =
        new ClosedHandleException("the process is ending: " + e.getMessage());
    closed.initCause(e);
    return closed;
  }

  private Memory memory(MemorySegment accelerator) {
    return machine.memory(accelerator.address() == 0 ? AUTO : CTypes.text(accelerator));
  }

  private Storage storage(long handle) {
    return handles.get(handle, Storage.class);
  }

  int close(long handle, MemorySegment f) {
    return call(f, () -> handles.close(handle));
  }

  // ---- storage

  int open(
      MemorySegment uri, MemorySegment accelerator, int flags, MemorySegment out, MemorySegment f) {
    return call(
        f,
        () -> {
          Structs.requireKnown(flags, Structs.WRITE);
          boolean write = (flags & Structs.WRITE) != 0;
          Storage storage = Storage.open(CTypes.text(uri), memory(accelerator), write);
          CTypes.setLong(out, handles.add(storage));
        });
  }

  int on(long handle, MemorySegment accelerator, MemorySegment out, MemorySegment f) {
    return call(f, () -> CTypes.setLong(out, handles.add(storage(handle).on(memory(accelerator)))));
  }

  int info(long handle, MemorySegment out, MemorySegment f) {
    return call(f, () -> Structs.info(out, storage(handle).storage()));
  }

  int transfer(
      long handle,
      int write,
      MemorySegment ranges,
      long count,
      MemorySegment cancelled,
      MemorySegment data,
      MemorySegment f) {
    return call(
        f,
        () ->
            storage(handle)
                .transfer(
                    write != 0, Structs.items(ranges, count), CTypes.question(cancelled, data)));
  }

  int flush(long handle, MemorySegment f) {
    return call(f, () -> storage(handle).storage().flush());
  }

  int submit(
      long handle,
      int write,
      MemorySegment ranges,
      long count,
      MemorySegment out,
      MemorySegment f) {
    return call(
        f,
        () -> {
          Request request = storage(handle).submit(write != 0, Structs.items(ranges, count));
          CTypes.setLong(out, handles.add(request));
        });
  }

  int submitOnStream(
      long handle,
      int write,
      MemorySegment range,
      long stream,
      MemorySegment out,
      MemorySegment f) {
    return call(
        f,
        () -> {
          Storage.Item item = Structs.items(range, 1).getFirst();
          Request request = storage(handle).submit(write != 0, item, stream);
          CTypes.setLong(out, handles.add(request));
        });
  }

  int await(long request, long nanos, MemorySegment f) {
    return codeOf(
        f,
        () ->
            handles.get(request, Request.class).await(nanos) ? CapiStatus.OK : CapiStatus.PENDING);
  }

  int cancel(long request, MemorySegment f) {
    return call(f, () -> handles.get(request, Request.class).cancel());
  }

  int plan(long handle, MemorySegment ranges, long count, MemorySegment out, MemorySegment f) {
    return call(
        f,
        () -> {
          Plan plan = storage(handle).plan(Structs.items(ranges, count));
          Structs.plan(out, plan.ios(), plan.bytesRead(), plan.bytesOverread(), plan.stagedBytes());
        });
  }

  int text(
      long handle,
      int which,
      MemorySegment text,
      long capacity,
      MemorySegment out,
      MemorySegment f) {
    return call(
        f,
        () -> {
          String all =
              switch (which) {
                case EXPLAIN -> storage(handle).storage().explain().toString();
                case DESCRIBE -> handles.get(handle, Model.class).describe();
                case LAYER_STATS -> handles.get(handle, Layers.class).stats();
                case KERNEL_ERRORS -> kernels(handle).errors();
                case CACHE_COUNTERS -> cache(handle).counters();
                case WEIGHTS_STATS -> handles.get(handle, Model.class).stats();
                default -> storage(handle).stats();
              };
          Structs.text(all, text, capacity, out);
        });
  }

  // ---- memory

  int allocate(long handle, long bytes, MemorySegment out, MemorySegment f) {
    return call(
        f,
        () -> {
          requireSome(bytes);
          CTypes.setLong(out, storage(handle).allocate(bytes));
        });
  }

  int memoryAllocate(MemorySegment accelerator, long bytes, MemorySegment out, MemorySegment f) {
    return call(
        f,
        () -> {
          requireSome(bytes);
          CTypes.setLong(out, memory(accelerator).allocateForItself(bytes));
        });
  }

  int memoryFree(MemorySegment accelerator, long address, MemorySegment f) {
    return call(f, () -> memory(accelerator).freeForItself(address));
  }

  int memoryCopy(
      MemorySegment accelerator,
      int toHost,
      long address,
      MemorySegment host,
      long bytes,
      MemorySegment f) {
    return call(f, () -> copy(memory(accelerator), toHost != 0, address, host, bytes));
  }

  private static void requireSome(long bytes) {
    if (bytes <= 0) {
      throw new InvalidRequestException(Long.toUnsignedString(bytes) + " bytes of memory");
    }
  }

  int release(long handle, long address, MemorySegment f) {
    return call(f, () -> storage(handle).free(address));
  }

  int copy(long handle, int toHost, long address, MemorySegment host, long bytes, MemorySegment f) {
    return call(f, () -> copy(storage(handle).memory(), toHost != 0, address, host, bytes));
  }

  private static void copy(
      Memory memory, boolean toHost, long address, MemorySegment host, long bytes) {
    if (CTypes.count(bytes, "length") == 0) {
      return;
    }
    Place place = memory.place(address, bytes);
    if (place == null) {
      throw new InvalidRequestException("%Xh is not memory of the accelerator".formatted(address));
    }
    DeviceBuffer buffer = place.buffer();
    try {
      if (toHost) {
        buffer.copyToHost(place.offset(address), CTypes.at(host, bytes));
      } else {
        buffer.copyFromHost(CTypes.at(host, bytes), place.offset(address));
      }
    } finally {
      place.release().run();
    }
  }

  // ---- floats

  int dequantize(
      MemorySegment accelerator, MemorySegment tensors, long count, long stream, MemorySegment f) {
    return call(
        f, () -> Dequantize.run(memory(accelerator), Structs.quantized(tensors, count), stream));
  }

  // ---- kinds

  int kindsOpen(long handle, MemorySegment out, MemorySegment f) {
    return call(f, () -> CTypes.setLong(out, handles.add(kinds(handle))));
  }

  private Kinds kinds(long handle) {
    if (handles.get(handle, AutoCloseable.class) instanceof BlockGpu gpu) {
      return new Kinds(gpu.storage(), gpu.blockSize());
    }
    Storage storage = storage(handle);
    return new Kinds(storage, storage.storage().alignment());
  }

  int kindsAdd(
      long handle,
      int number,
      int blocks,
      long offset,
      long length,
      long element,
      MemorySegment f) {
    return call(
        f,
        () ->
            handles
                .get(handle, Kinds.class)
                .add(
                    number,
                    blocks != 0,
                    CTypes.count(offset, "offset"),
                    CTypes.count(length, "length"),
                    CTypes.count(element, "element")));
  }

  int kindsRead(
      long handle,
      MemorySegment numbers,
      MemorySegment indexes,
      MemorySegment elements,
      long count,
      long address,
      long capacity,
      MemorySegment f) {
    return call(
        f,
        () -> {
          Kinds kinds = handles.get(handle, Kinds.class);
          long room = capacity < 0 ? Long.MAX_VALUE : capacity;
          kinds.read(
              CTypes.array(numbers, count, Integer.BYTES).toArray(CTypes.INT),
              CTypes.array(indexes, count, Long.BYTES).toArray(CTypes.LONG),
              CTypes.array(elements, count, Long.BYTES).toArray(CTypes.LONG),
              address,
              room);
        });
  }

  // ---- layers

  int layersOpen(long handle, long maxBytes, int depth, MemorySegment out, MemorySegment f) {
    return call(
        f,
        () -> {
          long bytes = CTypes.count(maxBytes, "layer of length");
          CTypes.setLong(out, handles.add(Layers.of(storage(handle), bytes, depth)));
        });
  }

  int layersLoad(long loader, long offset, long bytes, long address, MemorySegment f) {
    return call(
        f,
        () ->
            handles
                .get(loader, Layers.class)
                .load(CTypes.count(offset, "offset"), CTypes.count(bytes, "length"), address));
  }

  int layersPrefetch(
      long loader, MemorySegment offsets, MemorySegment bytes, long count, MemorySegment f) {
    return call(
        f,
        () ->
            handles
                .get(loader, Layers.class)
                .prefetch(
                    CTypes.array(offsets, count, Long.BYTES).toArray(CTypes.LONG),
                    CTypes.array(bytes, count, Long.BYTES).toArray(CTypes.LONG)));
  }

  int layersOpenModel(long weights, long maxBytes, int depth, MemorySegment out, MemorySegment f) {
    return call(
        f,
        () -> {
          long bytes = CTypes.count(maxBytes, "layer of length");
          Model model = handles.get(weights, Model.class);
          CTypes.setLong(out, handles.add(Layers.of(model, bytes, depth)));
        });
  }

  int layersPrefetchTensors(
      long loader, MemorySegment name, MemorySegment reads, long count, MemorySegment f) {
    return call(
        f,
        () ->
            handles
                .get(loader, Layers.class)
                .prefetch(CTypes.text(name), Structs.reads(reads, count)));
  }

  int layersCancel(long loader, MemorySegment f) {
    return call(f, () -> handles.get(loader, Layers.class).cancel());
  }

  int layersNext(
      long loader,
      int hasStream,
      long stream,
      MemorySegment address,
      MemorySegment bytes,
      MemorySegment f) {
    return call(
        f,
        () -> {
          Layers layers = handles.get(loader, Layers.class);
          give(hasStream != 0 ? layers.next(stream) : layers.next(), address, bytes);
        });
  }

  private static void give(LoadedLayer layer, MemorySegment address, MemorySegment bytes) {
    CTypes.setLong(address, layer.deviceAddress());
    CTypes.setLong(bytes, layer.layer().bytes());
  }

  int layersTake(
      long loader, long stream, MemorySegment address, MemorySegment bytes, MemorySegment f) {
    return call(f, () -> give(handles.get(loader, Layers.class).take(stream), address, bytes));
  }

  // ---- weights

  int weightsOpen(
      MemorySegment uri, MemorySegment accelerator, MemorySegment out, MemorySegment f) {
    return call(
        f,
        () -> CTypes.setLong(out, handles.add(Model.open(CTypes.text(uri), memory(accelerator)))));
  }

  int weightsShards(
      long weights,
      MemorySegment rules,
      int parts,
      MemorySegment dimensions,
      long count,
      MemorySegment f) {
    return call(
        f,
        () -> {
          MemorySegment all = CTypes.array(dimensions, count, Integer.BYTES);
          int[] found =
              handles
                  .get(weights, Model.class)
                  .shards(
                      rules.address() == 0 ? null : CTypes.text(rules),
                      all.toArray(CTypes.INT),
                      parts);
          MemorySegment.copy(found, 0, all, CTypes.INT, 0, found.length);
        });
  }

  int weightsRead(long weights, MemorySegment reads, long count, MemorySegment f) {
    return call(f, () -> handles.get(weights, Model.class).read(Structs.reads(reads, count)));
  }

  // ---- plans

  int planLayers(
      MemorySegment layers,
      long count,
      long budget,
      int slots,
      MemorySegment out,
      MemorySegment stays,
      MemorySegment f) {
    return codeOf(
        f,
        () -> {
          // More than there can be is everything.
          long most = budget < 0 ? StreamPlan.EVERYTHING : budget;
          StreamPlan plan = StreamPlan.of(Structs.layerSizes(layers, count), 0, most, slots);
          Structs.layerPlan(out, plan);
          if (stays.address() != 0) {
            MemorySegment each = CTypes.array(stays, count, 1).fill((byte) 0);
            plan.resident().forEach(i -> each.set(CTypes.BYTE, i, (byte) 1));
          }
          return CapiStatus.OK;
        });
  }

  // ---- kernels

  private KernelGroup kernelGroup(long handle) {
    return handles.get(handle, KernelGroup.class);
  }

  private Kernels kernels(long handle) {
    return kernelGroup(handle).storage();
  }

  int kernelsOpen(
      MemorySegment storages,
      long count,
      MemorySegment options,
      MemorySegment out,
      MemorySegment f) {
    return call(
        f,
        () -> {
          long[] all = CTypes.array(storages, count, Long.BYTES).toArray(CTypes.LONG);
          Kernels opened =
              Kernels.open(
                  Arrays.stream(all).mapToObj(this::storage).toList(),
                  Structs.kernelOptions(options));
          CTypes.setLong(out, handles.add(opened));
        });
  }

  int kernelsHandle(long kernels, MemorySegment out, MemorySegment f) {
    return call(f, () -> CTypes.setLong(out, handles.add(kernels(kernels).handle())));
  }

  int kernelsDeviceHandle(long kernels, MemorySegment out, MemorySegment f) {
    return call(f, () -> CTypes.setLong(out, kernelGroup(kernels).deviceHandle()));
  }

  int kernelsRegister(
      long kernels,
      long address,
      long bytes,
      MemorySegment number,
      MemorySegment offset,
      MemorySegment f) {
    return call(
        f,
        () -> {
          Kernels.Numbered buffer = kernels(kernels).register(address, bytes);
          CTypes.at(number, Integer.BYTES).set(CTypes.INT, 0, buffer.number());
          CTypes.setLong(offset, buffer.offset());
        });
  }

  int kernelsUnregister(long kernels, int number, MemorySegment f) {
    return call(f, () -> kernels(kernels).unregister(number));
  }

  int kernelsFile(long kernels, long file, MemorySegment out, MemorySegment f) {
    return call(f, () -> CTypes.setLong(out, kernels(kernels).file(storage(file))));
  }

  int kernelsDirectory(
      long kernels,
      long storage,
      MemorySegment path,
      int flags,
      MemorySegment out,
      MemorySegment f) {
    return call(
        f,
        () -> {
          Structs.requireKnown(flags, Structs.DIRECTORY_SKIP);
          boolean skip = (flags & Structs.DIRECTORY_SKIP) != 0;
          long address = kernels(kernels).directory(storage(storage), CTypes.text(path), skip);
          CTypes.setLong(out, address);
        });
  }

  int kernelsSkipped(
      long kernels,
      long address,
      MemorySegment text,
      long capacity,
      MemorySegment out,
      MemorySegment f) {
    return call(f, () -> Structs.text(kernels(kernels).skipped(address), text, capacity, out));
  }

  int kernelsFree(long kernels, long address, MemorySegment f) {
    return call(f, () -> kernels(kernels).free(address));
  }

  int kernelsAwait(
      long kernels,
      long stream,
      long nanos,
      MemorySegment cancelled,
      MemorySegment data,
      MemorySegment f) {
    return call(
        f, () -> kernelGroup(kernels).await(stream, nanos, CTypes.question(cancelled, data)));
  }

  int kernelsAwaitEvent(
      long kernels,
      long event,
      long nanos,
      MemorySegment cancelled,
      MemorySegment data,
      MemorySegment f) {
    return call(
        f, () -> kernelGroup(kernels).awaitEvent(event, nanos, CTypes.question(cancelled, data)));
  }

  int kernelsStop(long kernels, int value, MemorySegment f) {
    return call(f, () -> kernelGroup(kernels).stop(value != 0));
  }

  int kernelsRecover(long kernels, MemorySegment f) {
    return call(f, () -> kernels(kernels).recover());
  }

  int kernelsRecoveries(long kernels, MemorySegment out, MemorySegment f) {
    return call(f, () -> CTypes.setLong(out, kernels(kernels).recoveries()));
  }

  // ---- caches and rows

  private Cache cache(long handle) {
    return handles.get(handle, Cache.class);
  }

  private Rows rows(long handle) {
    return handles.get(handle, Rows.class);
  }

  int cacheOpen(long kernels, MemorySegment options, MemorySegment out, MemorySegment f) {
    return call(
        f,
        () ->
            CTypes.setLong(
                out, handles.add(kernels(kernels).cache(Structs.cacheOptions(options)))));
  }

  int cacheArray(
      long cache,
      long storage,
      long offset,
      long count,
      int elementBytes,
      int flags,
      MemorySegment out,
      MemorySegment f) {
    return call(
        f,
        () -> {
          Structs.requireKnown(flags, Structs.WRITE);
          long address =
              cache(cache)
                  .array(
                      storage(storage),
                      CTypes.count(offset, "offset"),
                      CTypes.count(count, "number of elements"),
                      elementBytes,
                      flags != 0);
          CTypes.setLong(out, address);
        });
  }

  int cacheFlush(long cache, long nanos, MemorySegment f) {
    return call(f, () -> cache(cache).flush(nanos));
  }

  int rowsOpen(
      long cache,
      long storage,
      long offset,
      long count,
      long rowBytes,
      int flags,
      MemorySegment out,
      MemorySegment f) {
    return call(
        f,
        () -> {
          Structs.requireKnown(flags, Structs.WRITE);
          Rows rows =
              cache(cache)
                  .rows(
                      storage(storage),
                      CTypes.count(offset, "offset"),
                      CTypes.count(count, "number of rows"),
                      CTypes.count(rowBytes, "length of a row"),
                      flags != 0);
          CTypes.setLong(out, handles.add(rows));
        });
  }

  int rowsGather(long rows, long ids, long count, long target, long stream, MemorySegment f) {
    return call(f, () -> rows(rows).gather(ids, count, target, stream));
  }

  int rowsFetch(long rows, long ids, long count, long stream, MemorySegment f) {
    return call(f, () -> rows(rows).fetch(ids, count, stream));
  }

  int rowsUpdate(long rows, long ids, long count, long source, long stream, MemorySegment f) {
    return call(f, () -> rows(rows).update(ids, count, source, stream));
  }

  int rowsSynchronize(long rows, MemorySegment f) {
    return call(f, () -> rows(rows).synchronize());
  }

  // ---- nvme_gpu

  int gpuOpen(MemorySegment device, MemorySegment out, MemorySegment f) {
    return call(
        f,
        () -> {
          Memory memory = machine.memory(System.getenv().getOrDefault("GPUNVME_ACCELERATOR", AUTO));
          BlockGpu gpu = BlockGpu.open(CTypes.text(device), memory, System.getenv());
          CTypes.setLong(out, handles.add(gpu));
        });
  }

  int gpuTransfer(long gpu, int write, long lba, long blocks, long address, MemorySegment f) {
    return call(
        f, () -> handles.get(gpu, BlockGpu.class).transfer(write != 0, lba, blocks, address));
  }

  int gpuStart(
      long gpu, int write, long lba, long blocks, long address, long stream, MemorySegment f) {
    return call(
        f, () -> handles.get(gpu, BlockGpu.class).start(write != 0, lba, blocks, address, stream));
  }

  int gpuSynchronize(long gpu, MemorySegment f) {
    return call(f, () -> handles.get(gpu, BlockGpu.class).synchronize());
  }

  /** How many handles are open. */
  int open() {
    return handles.count();
  }
}
