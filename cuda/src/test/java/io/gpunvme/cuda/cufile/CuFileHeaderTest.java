package io.gpunvme.cuda.cufile;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.cuda.CudaHeaders;
import io.gpunvme.cuda.StandIn;
import io.gpunvme.testing.HeaderNumbers;
import io.gpunvme.testing.NativeCompiler;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Numbers, layouts and signatures against NVIDIA's header, where it is installed. */
final class CuFileHeaderTest {
  /** It includes cuda.h. */
  private final String[] include = {
    "-I" + CudaHeaders.folder("cufile.h", "nvidia-cufile"), "-I" + CudaHeaders.folder()
  };

  /** C expressions and the values that they should have. */
  private static Map<String, Long> expected() {
    Map<String, Long> expected = new LinkedHashMap<>();
    for (CuFileError error : CuFileError.values()) {
      expected.put(error.symbol(), (long) error.code());
    }
    for (CuFileSizeParameter parameter : CuFileSizeParameter.values()) {
      expected.put("CUFILE_PARAM_" + parameter, (long) parameter.number());
    }
    for (CuFileSwitch parameter : CuFileSwitch.values()) {
      expected.put("CUFILE_PARAM_" + parameter, (long) parameter.number());
    }
    for (CuFileTextParameter parameter : CuFileTextParameter.values()) {
      expected.put("CUFILE_PARAM_" + parameter, (long) parameter.number());
    }
    for (CuFileCompletion.Status status : CuFileCompletion.Status.values()) {
      expected.put("CUFILE_" + status, (long) status.number());
    }
    expected.put("CU_FILE_STREAM_FIXED_BUF_OFFSET", (long) CuFileStream.Fixed.BUFFER_OFFSET.bit());
    expected.put("CU_FILE_STREAM_FIXED_FILE_OFFSET", (long) CuFileStream.Fixed.FILE_OFFSET.bit());
    expected.put("CU_FILE_STREAM_FIXED_FILE_SIZE", (long) CuFileStream.Fixed.BYTES.bit());
    expected.put(
        "CU_FILE_STREAM_PAGE_ALIGNED_INPUTS", (long) CuFileStream.Fixed.PAGE_ALIGNED.bit());
    expected.put("sizeof(CUfileError_t)", 8L);
    expected.put("offsetof(CUfileError_t, cu_err)", 4L);
    expected.put("sizeof(CUfileDrvProps_t)", CuFileProperties.BYTES);
    expected.put("offsetof(CUfileDrvProps_t, nvfs.dcontrolflags)", 28L);
    expected.put("offsetof(CUfileDrvProps_t, max_batch_io_timeout_msecs)", 52L);
    expected.put("sizeof(CUfileDescr_t)", CuFileHandle.DESCRIPTION_BYTES);
    expected.put("offsetof(CUfileDescr_t, handle)", 8L);
    expected.put("sizeof(CUfileIOParams_t)", CuFileBatch.REQUEST_BYTES);
    expected.put("offsetof(CUfileIOParams_t, u.batch.devPtr_base)", 8L);
    expected.put("offsetof(CUfileIOParams_t, u.batch.file_offset)", 16L);
    expected.put("offsetof(CUfileIOParams_t, u.batch.devPtr_offset)", 24L);
    expected.put("offsetof(CUfileIOParams_t, u.batch.size)", 32L);
    expected.put("offsetof(CUfileIOParams_t, fh)", 40L);
    expected.put("offsetof(CUfileIOParams_t, opcode)", 48L);
    expected.put("offsetof(CUfileIOParams_t, cookie)", 56L);
    expected.put("sizeof(CUfileIOEvents_t)", CuFileBatch.EVENT_BYTES);
    expected.put("offsetof(CUfileIOEvents_t, status)", 8L);
    expected.put("offsetof(CUfileIOEvents_t, ret)", 16L);
    putStatistics(expected);
    return expected;
  }

  private static void putStatistics(Map<String, Long> expected) {
    expected.put("sizeof(CUfileStatsLevel1_t)", StatisticsLayout.LEVEL_1_BYTES);
    expected.put("sizeof(CUfileStatsLevel2_t)", StatisticsLayout.LEVEL_2_BYTES);
    expected.put("sizeof(CUfileStatsLevel3_t)", StatisticsLayout.LEVEL_3_BYTES);
    expected.put("sizeof(CUfilePerGpuStats_t)", StatisticsLayout.GPU_BYTES);
    expected.put("offsetof(CUfileStatsLevel3_t, num_gpus)", StatisticsLayout.LEVEL_2_BYTES);
    expected.put("offsetof(CUfileStatsLevel3_t, per_gpu_stats)", StatisticsLayout.GPUS);
    Map<String, Integer> level1 =
        Map.ofEntries(
            Map.entry("write_ops", 2),
            Map.entry("hdl_register_ops", 4),
            Map.entry("hdl_deregister_ops", 6),
            Map.entry("buf_register_ops", 8),
            Map.entry("buf_deregister_ops", 10),
            Map.entry("read_bytes", 12),
            Map.entry("write_bytes", 13),
            Map.entry("read_lat_avg_us", 16),
            Map.entry("write_lat_avg_us", 17),
            Map.entry("batch_submit_ops", 22),
            Map.entry("batch_enqueued_ops", 32),
            Map.entry("batch_posix_enqueued_ops", 34),
            Map.entry("batch_nvfs_submit_ops", 40),
            Map.entry("batch_p2p_submit_ops", 42),
            Map.entry("batch_aio_submit_ops", 44),
            Map.entry("batch_iouring_submit_ops", 46));
    level1.forEach(
        (field, index) -> expected.put("offsetof(CUfileStatsLevel1_t, " + field + ")", 8L * index));
    expected.put("offsetof(CUfileStatsLevel2_t, read_size_kb_hist)", 8L * 64);
    expected.put("offsetof(CUfileStatsLevel2_t, write_size_kb_hist)", 8L * 96);
    Map<String, Integer> gpu =
        Map.ofEntries(
            Map.entry("read_bytes", 0),
            Map.entry("n_total_reads", 4),
            Map.entry("n_p2p_reads", 5),
            Map.entry("n_nvfs_reads", 6),
            Map.entry("n_posix_reads", 7),
            Map.entry("n_unaligned_reads", 8),
            Map.entry("n_dr_reads", 9),
            Map.entry("n_reads_err", 12),
            Map.entry("writes_bytes", 13),
            Map.entry("n_total_writes", 17),
            Map.entry("n_p2p_writes", 18),
            Map.entry("n_nvfs_writes", 19),
            Map.entry("n_posix_writes", 20),
            Map.entry("n_unaligned_writes", 21),
            Map.entry("n_dr_writes", 22),
            Map.entry("n_writes_err", 23),
            Map.entry("n_mmap_ok", 25),
            Map.entry("reg_bytes", 28));
    gpu.forEach(
        (field, index) ->
            expected.put("offsetof(CUfilePerGpuStats_t, " + field + ")", 16 + 8L * index));
  }

  @Test
  void numbersAndLayoutsAgree() {
    HeaderNumbers numbers = new HeaderNumbers(NativeCompiler.C, "#include <cufile.h>");
    expected().forEach(numbers::value);
    numbers.compare(include);
  }

  @Test
  void theStandInHasTheHeadersSignatures() {
    List<String> options = new ArrayList<>(List.of("-DUSE_CUFILE_H", "-Wmissing-prototypes"));
    options.addAll(List.of(include));
    assertThat(StandIn.compile("cufile", options.toArray(String[]::new))).isNotEmptyFile();
  }
}
