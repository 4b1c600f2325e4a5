package io.gpunvme.capi;

import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.testing.HeaderNumbers;
import io.gpunvme.testing.NativeCompiler;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Layouts and numbers against the headers, by a C compiler. */
class StructsTest {
  private static Map<String, Long> expected() {
    Map<String, Long> all = new LinkedHashMap<>();
    all.put("sizeof(gpunvme_info)", Structs.INFO);
    all.put("offsetof(gpunvme_info, size)", Structs.INFO_SIZE);
    all.put("offsetof(gpunvme_info, alignment)", Structs.INFO_ALIGNMENT);
    all.put("offsetof(gpunvme_info, block_bytes)", Structs.INFO_BLOCK_BYTES);
    all.put("offsetof(gpunvme_info, gpu)", Structs.INFO_GPU);
    all.put("offsetof(gpunvme_info, device)", Structs.INFO_DEVICE);
    all.put("offsetof(gpunvme_info, gpu_bytes)", Structs.INFO_GPU_BYTES);
    all.put("sizeof(gpunvme_range)", Structs.RANGE);
    all.put("offsetof(gpunvme_range, offset)", Structs.RANGE_OFFSET);
    all.put("offsetof(gpunvme_range, address)", Structs.RANGE_ADDRESS);
    all.put("offsetof(gpunvme_range, bytes)", Structs.RANGE_BYTES);
    all.put("sizeof(gpunvme_plan_info)", Structs.PLAN);
    all.put("offsetof(gpunvme_plan_info, ios)", Structs.PLAN_IOS);
    all.put("offsetof(gpunvme_plan_info, bytes)", Structs.PLAN_BYTES);
    all.put("offsetof(gpunvme_plan_info, bytes_overread)", Structs.PLAN_OVERREAD);
    all.put("offsetof(gpunvme_plan_info, bytes_staged)", Structs.PLAN_STAGED);
    all.put("sizeof(gpunvme_tensor_read)", Structs.READ);
    all.put("offsetof(gpunvme_tensor_read, tensor)", Structs.READ_TENSOR);
    all.put("offsetof(gpunvme_tensor_read, dimension)", Structs.READ_DIMENSION);
    all.put("offsetof(gpunvme_tensor_read, start)", Structs.READ_START);
    all.put("offsetof(gpunvme_tensor_read, stop)", Structs.READ_STOP);
    all.put("offsetof(gpunvme_tensor_read, address)", Structs.READ_ADDRESS);
    all.put("offsetof(gpunvme_tensor_read, capacity)", Structs.READ_CAPACITY);
    all.put("sizeof(gpunvme_quantized)", Structs.QUANTIZED);
    all.put("offsetof(gpunvme_quantized, type)", Structs.QUANTIZED_TYPE);
    all.put("offsetof(gpunvme_quantized, source)", Structs.QUANTIZED_SOURCE);
    all.put("offsetof(gpunvme_quantized, target_type)", Structs.QUANTIZED_TARGET_TYPE);
    all.put("offsetof(gpunvme_quantized, target)", Structs.QUANTIZED_TARGET);
    all.put("offsetof(gpunvme_quantized, rows)", Structs.QUANTIZED_ROWS);
    all.put("offsetof(gpunvme_quantized, columns)", Structs.QUANTIZED_COLUMNS);
    all.put("offsetof(gpunvme_quantized, scales)", Structs.QUANTIZED_SCALES);
    all.put("offsetof(gpunvme_quantized, block_rows)", Structs.QUANTIZED_BLOCK_ROWS);
    all.put("offsetof(gpunvme_quantized, block_columns)", Structs.QUANTIZED_BLOCK_COLUMNS);
    all.put("sizeof(gpunvme_kernel_options)", Structs.KERNEL_OPTIONS);
    all.put("offsetof(gpunvme_kernel_options, placement)", Structs.KERNEL_OPTIONS_PLACEMENT);
    all.put("offsetof(gpunvme_kernel_options, queue_pairs)", Structs.KERNEL_OPTIONS_QUEUE_PAIRS);
    all.put("offsetof(gpunvme_kernel_options, depth)", Structs.KERNEL_OPTIONS_DEPTH);
    all.put("offsetof(gpunvme_kernel_options, buffers)", Structs.KERNEL_OPTIONS_BUFFERS);
    all.put("offsetof(gpunvme_kernel_options, nsid)", Structs.KERNEL_OPTIONS_NSID);
    all.put("offsetof(gpunvme_kernel_options, flags)", Structs.KERNEL_OPTIONS_FLAGS);
    all.put("sizeof(gpunvme_cache_options)", Structs.CACHE_OPTIONS);
    all.put("offsetof(gpunvme_cache_options, bytes)", Structs.CACHE_OPTIONS_BYTES);
    all.put("offsetof(gpunvme_cache_options, host_bytes)", Structs.CACHE_OPTIONS_HOST_BYTES);
    all.put("offsetof(gpunvme_cache_options, timeout_ns)", Structs.CACHE_OPTIONS_TIMEOUT_NS);
    all.put("offsetof(gpunvme_cache_options, page_bytes)", Structs.CACHE_OPTIONS_PAGE_BYTES);
    all.put("offsetof(gpunvme_cache_options, flags)", Structs.CACHE_OPTIONS_FLAGS);
    all.put("GPUNVME_CACHE_UNCOUNTED", (long) Structs.CACHE_UNCOUNTED);
    all.put("GPUNVME_CACHE_VERIFY", (long) Structs.CACHE_VERIFY);
    for (Placement placement : Placement.values()) {
      all.put(
          "GPUNVME_PLACEMENT_" + placement.name(), (long) Structs.PLACEMENTS.indexOf(placement));
    }
    all.put("GPUNVME_WRITE", (long) Structs.WRITE);
    all.put("GPUNVME_TENSOR_BYTES", (long) Structs.TENSOR_BYTES);
    all.put("GPUNVME_KERNELS_RECOVER", (long) Structs.KERNELS_RECOVER);
    all.put("GPUNVME_DIRECTORY_SKIP", (long) Structs.DIRECTORY_SKIP);
    layers(all);
    all.put("sizeof(table) / sizeof(void *)", Exports.TABLE.size() + 1L);
    all.put("sizeof(failure)", 2048L);
    all.put("offsetof(failure, text)", 8L);
    all.put("GPUNVME_TABLE_VERSION", (long) Exports.VERSION);
    return codes(all);
  }

  private static void layers(Map<String, Long> all) {
    all.put("sizeof(gpunvme_layer_size)", Structs.LAYER);
    all.put("offsetof(gpunvme_layer_size, stored)", Structs.LAYER_STORED);
    all.put("offsetof(gpunvme_layer_size, used)", Structs.LAYER_USED);
    all.put("offsetof(gpunvme_layer_size, unconverted)", Structs.LAYER_UNCONVERTED);
    all.put("offsetof(gpunvme_layer_size, converted)", Structs.LAYER_CONVERTED);
    all.put("offsetof(gpunvme_layer_size, experts)", Structs.LAYER_EXPERTS);
    all.put("offsetof(gpunvme_layer_size, router)", Structs.LAYER_ROUTER);
    all.put("sizeof(gpunvme_layer_plan)", Structs.LAYER_PLAN);
    all.put("offsetof(gpunvme_layer_plan, slot_bytes)", Structs.LAYER_PLAN_SLOT_BYTES);
    all.put("offsetof(gpunvme_layer_plan, ring_bytes)", Structs.LAYER_PLAN_RING_BYTES);
    all.put("offsetof(gpunvme_layer_plan, resident_bytes)", Structs.LAYER_PLAN_RESIDENT_BYTES);
    all.put("offsetof(gpunvme_layer_plan, converted_bytes)", Structs.LAYER_PLAN_CONVERTED_BYTES);
    all.put("offsetof(gpunvme_layer_plan, device_bytes)", Structs.LAYER_PLAN_DEVICE_BYTES);
    all.put("offsetof(gpunvme_layer_plan, pass_bytes)", Structs.LAYER_PLAN_PASS_BYTES);
    all.put(
        "offsetof(gpunvme_layer_plan, expert_slot_bytes)", Structs.LAYER_PLAN_EXPERT_SLOT_BYTES);
    all.put(
        "offsetof(gpunvme_layer_plan, expert_ring_bytes)", Structs.LAYER_PLAN_EXPERT_RING_BYTES);
    all.put("offsetof(gpunvme_layer_plan, router_bytes)", Structs.LAYER_PLAN_ROUTER_BYTES);
    all.put("offsetof(gpunvme_layer_plan, slots)", Structs.LAYER_PLAN_SLOTS);
    all.put("offsetof(gpunvme_layer_plan, reads)", Structs.LAYER_PLAN_READS);
    all.put("offsetof(gpunvme_layer_plan, expert_slots)", Structs.LAYER_PLAN_EXPERT_SLOTS);
  }

  private static Map<String, Long> codes(Map<String, Long> all) {
    all.put("GPUNVME_OK", (long) CapiStatus.OK);
    all.put("GPUNVME_PENDING", (long) CapiStatus.PENDING);
    all.put("GPUNVME_ERROR_INVALID", (long) CapiStatus.INVALID);
    all.put("GPUNVME_ERROR_NOT_FOUND", (long) CapiStatus.NOT_FOUND);
    all.put("GPUNVME_ERROR_PERMISSION", (long) CapiStatus.PERMISSION);
    all.put("GPUNVME_ERROR_IO", (long) CapiStatus.IO);
    all.put("GPUNVME_ERROR_NO_SPACE", (long) CapiStatus.NO_SPACE);
    all.put("GPUNVME_ERROR_GONE", (long) CapiStatus.GONE);
    all.put("GPUNVME_ERROR_CANCELLED", (long) CapiStatus.CANCELLED);
    all.put("GPUNVME_ERROR_MEMORY", (long) CapiStatus.MEMORY);
    all.put("GPUNVME_ERROR_ACCELERATOR", (long) CapiStatus.ACCELERATOR);
    all.put("GPUNVME_ERROR_TIMEOUT", (long) CapiStatus.TIMEOUT);
    all.put("GPUNVME_ERROR_UNSUPPORTED", (long) CapiStatus.UNSUPPORTED);
    all.put("GPUNVME_ERROR_FORMAT", (long) CapiStatus.FORMAT);
    all.put("GPUNVME_ERROR_CLOSED", (long) CapiStatus.CLOSED);
    all.put("GPUNVME_ERROR_BUSY", (long) CapiStatus.BUSY);
    all.put("GPUNVME_ERROR_INTERNAL", (long) CapiStatus.INTERNAL);
    return all;
  }

  @Test
  void theHeadersSayTheSame() {
    HeaderNumbers numbers = new HeaderNumbers(NativeCompiler.C, "#include \"table.h\"");
    expected().forEach(numbers::value);
    numbers.compare(
        "-I" + Path.of("include").toAbsolutePath(), "-I" + Path.of("src/main/c").toAbsolutePath());
  }
}
