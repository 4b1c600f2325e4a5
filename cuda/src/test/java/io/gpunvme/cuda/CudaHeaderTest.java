package io.gpunvme.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.gpunvme.testing.HeaderNumbers;
import io.gpunvme.testing.NativeCompiler;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemoryLayout.PathElement;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** Numbers, layouts and signatures against NVIDIA's header of CUDA 13, where it is installed. */
final class CudaHeaderTest {
  private static final Pattern VERSION = Pattern.compile("#define CUDA_VERSION (\\d+)");

  private final Path folder = CudaHeaders.folder();
  private final String include = "-I" + folder;
  private final String header = read(folder);

  private static String read(Path folder) {
    try {
      String header = Files.readString(folder.resolve("cuda.h"));
      Matcher version = VERSION.matcher(header);
      assumeTrue(
          version.find() && version.group(1).startsWith("13"),
          () -> "the header in " + folder + " is not of CUDA 13");
      return header;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** C expressions and the values that they should have. */
  private static Map<String, Long> expected() {
    Map<String, Long> expected = new LinkedHashMap<>();
    for (CudaAttribute attribute : CudaAttribute.values()) {
      expected.put("CU_DEVICE_ATTRIBUTE_" + attribute, (long) attribute.number());
    }
    for (FunctionAttribute attribute : FunctionAttribute.values()) {
      expected.put("CU_FUNC_ATTRIBUTE_" + attribute, (long) attribute.number());
    }
    for (RegisterFlag flag : RegisterFlag.values()) {
      expected.put("CU_MEMHOSTREGISTER_" + flag, (long) flag.bit());
    }
    for (WritesOrdering ordering : WritesOrdering.values()) {
      expected.put("CU_GPU_DIRECT_RDMA_WRITES_ORDERING_" + ordering, (long) ordering.number());
    }
    expected.put("CU_POINTER_ATTRIBUTE_MEMORY_TYPE", (long) MemoryCalls.MEMORY_TYPE);
    expected.put("CU_POINTER_ATTRIBUTE_BUFFER_ID", (long) MemoryCalls.BUFFER_ID);
    expected.put("CU_POINTER_ATTRIBUTE_IS_MANAGED", (long) MemoryCalls.IS_MANAGED);
    expected.put("CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL", (long) MemoryCalls.DEVICE_ORDINAL);
    expected.put("CU_POINTER_ATTRIBUTE_RANGE_START_ADDR", (long) MemoryCalls.RANGE_START_ADDR);
    expected.put("CU_POINTER_ATTRIBUTE_RANGE_SIZE", (long) MemoryCalls.RANGE_SIZE);
    expected.put("CU_MEMORYTYPE_DEVICE", (long) MemoryCalls.TYPE_DEVICE);
    putErrors(expected);
    putLayout(expected);
    return expected;
  }

  private static void putErrors(Map<String, Long> expected) {
    expected.put("CUDA_ERROR_INVALID_VALUE", (long) CudaException.INVALID_VALUE);
    expected.put("CUDA_ERROR_OUT_OF_MEMORY", (long) CudaException.OUT_OF_MEMORY);
    expected.put("CUDA_ERROR_DEINITIALIZED", (long) CudaException.DEINITIALIZED);
    expected.put("CUDA_ERROR_NO_DEVICE", (long) CudaException.NO_DEVICE);
    expected.put("CUDA_ERROR_NOT_FOUND", (long) CudaException.NOT_FOUND);
    expected.put("CUDA_ERROR_NOT_READY", (long) CudaException.NOT_READY);
    expected.put("CUDA_ERROR_ILLEGAL_ADDRESS", (long) CudaException.ILLEGAL_ADDRESS);
    expected.put("CUDA_ERROR_CONTEXT_IS_DESTROYED", (long) CudaException.CONTEXT_IS_DESTROYED);
    expected.put(
        "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
        (long) CudaException.HOST_MEMORY_ALREADY_REGISTERED);
    expected.put("CUDA_ERROR_NOT_PERMITTED", (long) CudaException.NOT_PERMITTED);
    expected.put("CUDA_ERROR_NOT_SUPPORTED", (long) CudaException.NOT_SUPPORTED);
  }

  private static void putLayout(Map<String, Long> expected) {
    expected.put("sizeof(CUmemcpyAttributes)", CopyCalls.ATTRIBUTES.byteSize());
    expected.put("_Alignof(CUmemcpyAttributes)", CopyCalls.ATTRIBUTES.byteAlignment());
    for (String field : new String[] {"srcAccessOrder", "srcLocHint", "dstLocHint", "flags"}) {
      expected.put(
          "offsetof(CUmemcpyAttributes, " + field + ")",
          CopyCalls.ATTRIBUTES.byteOffset(PathElement.groupElement(field)));
    }
    expected.put("sizeof(CUdeviceptr)", (long) Long.BYTES);
    expected.put("sizeof(CUdevice)", (long) Integer.BYTES);
    expected.put("sizeof(CUresult)", (long) Integer.BYTES);
  }

  @Test
  void numbersAndLayoutsAgree() {
    HeaderNumbers numbers = new HeaderNumbers(NativeCompiler.C, "#include <cuda.h>");
    expected().forEach(numbers::value);
    numbers.compare(include);
  }

  /** Its functions are the ones that the other tests call, so their signatures count. */
  @Test
  void theStandInHasTheHeadersSignatures() {
    assertThat(StandIn.compile("cuda", "-DUSE_CUDA_H", "-Wmissing-prototypes", include))
        .isNotEmptyFile();
  }

  /** Those that need a new process say so in the header. */
  @Test
  void errorsThatLoseTheContextAreKnown() {
    Pattern constant =
        Pattern.compile(
            "/\\*\\*((?:(?!\\*/).)*)\\*/\\s*(CUDA_ERROR_\\w+)\\s*=\\s*(\\d+)", Pattern.DOTALL);
    int lost = 0;
    for (MatchResult error : constant.matcher(header).results().toList()) {
      int code = Integer.parseInt(error.group(3));
      boolean fatal =
          error.group(1).contains("relaunched") || error.group(1).contains("must be destroyed");
      assertThat(new CudaException("f", code, "", "").contextLost())
          .as(error.group(2))
          .isEqualTo(fatal);
      lost += fatal ? 1 : 0;
    }
    assertThat(lost).isGreaterThan(10);
  }
}
