package io.gpunvme.tools.doctor;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import io.gpunvme.cuda.CudaModule;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.cuda.KernelArguments;
import io.gpunvme.cuda.LaunchShape;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import java.nio.charset.StandardCharsets;

/** One load of a register by a GPU. */
final class RegisterLoad {
  /** A load that is done once and as it is written (PTX ISA 8.2, ld.mmio; sm_70 and newer). */
  private static final String PTX =
      """
      .version 8.2
      .target sm_75
      .address_size 64

      .visible .entry load_register(.param .u64 from, .param .u64 to)
      {
        .reg .b32 %value;
        .reg .b64 %from, %to;
        ld.param.u64 %from, [from];
        ld.param.u64 %to, [to];
        ld.mmio.relaxed.sys.global.u32 %value, [%from];
        st.global.u32 [%to], %value;
        ret;
      }
      """;

  private RegisterLoad() {}

  /** Loads four bytes from a device address. */
  static int load(GpuAccelerator gpu, long deviceAddress) {
    try (DeviceBuffer result = gpu.allocatePinned(Integer.BYTES);
        CudaModule module = gpu.context().loadModule(PTX.getBytes(StandardCharsets.US_ASCII));
        CudaStream stream = gpu.context().stream()) {
      KernelArguments arguments =
          new KernelArguments().addLong(deviceAddress).addLong(result.deviceAddress());
      stream.launch(module.function("load_register"), LaunchShape.of(1, 1), arguments);
      stream.synchronize();
      return result.segment().get(JAVA_INT, 0);
    }
  }
}
