package io.gpunvme.cuda;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** Uses every call of the module once or more. */
final class Scenario {
  private static final byte[] PTX = {'p', 't', 'x'};

  private Scenario() {}

  static void run(Cuda cuda) {
    try (CallersContext _ = cuda.keepCallersContext();
        CudaContext context = cuda.device(0).openPrimary()) {
      context.makeCurrent();
      context.memoryInfo();
      context.flushGpuDirectWrites(WritesOrdering.OWNER);
      useMemory(context);
      useStreams(context);
      useModules(context);
      context.synchronize();
    }
  }

  private static void useMemory(CudaContext context) {
    try (Arena arena = Arena.ofConfined();
        DeviceMemory memory = context.allocate(4096, 4096);
        PinnedMemory pinned = context.allocatePinned(4096);
        RegisteredMemory registered = context.register(arena.allocate(100))) {
      memory.copyFrom(pinned.segment(), 0);
      memory.copyTo(0, pinned.segment());
      memory.fill((byte) 1);
      memory.exportDmaBuf().close();
      registered.deviceAddress();
    }
  }

  private static void useStreams(CudaContext context) {
    try (CudaStream stream = context.stream();
        CudaEvent start = context.timingEvent();
        CudaEvent end = context.event();
        DeviceMemory memory = context.allocate(64);
        PinnedMemory pinned = context.allocatePinned(64)) {
      MemorySegment half = pinned.segment().asSlice(0, 32);
      stream.record(start);
      stream.copyToDeviceAsync(memory.address(), half);
      stream.copyToHostAsync(half, memory.address());
      stream.copyOnDeviceAsync(memory.address() + 32, memory.address(), 32);
      stream.fillAsync(memory.address(), (byte) 2, 32);
      CopyBatch batch = new CopyBatch(4);
      batch.add(memory.address(), memory.address() + 32, 32);
      stream.copyBatchAsync(batch);
      stream.record(end);
      stream.await(end);
      end.isDone();
      end.synchronize();
      end.millisecondsSince(start);
      stream.isIdle();
      stream.isCapturing();
      stream.synchronize();
    }
  }

  private static void useModules(CudaContext context) {
    try (CudaModule module = context.loadModule(PTX);
        CudaStream stream = context.stream()) {
      module.global("variable");
      CudaFunction kernel = module.function("kernel_8_4");
      kernel.attribute(FunctionAttribute.NUM_REGS);
      kernel.allowDynamicShared(1000);
      kernel.maxActiveBlocks(128, 0);
      KernelArguments arguments = new KernelArguments().addLong(1).addInt(2);
      stream.launch(kernel, LaunchShape.of(1, 32), arguments);
      stream.launchCooperative(kernel, LaunchShape.of(1, 32), arguments);
    }
  }
}
