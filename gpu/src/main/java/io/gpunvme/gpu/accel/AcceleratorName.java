package io.gpunvme.gpu.accel;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.Cuda;
import io.gpunvme.cuda.CudaDevice;
import io.gpunvme.nvme.pci.PciAddress;
import java.util.List;
import java.util.Locale;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * A name that people give an accelerator: {@code auto}, {@code cpu}, {@code gpu}, {@code gpu:1} as
 * CUDA counts, the PCI address of a GPU, or its UUID or that of a MIG instance, of which the first
 * characters do if no other has them. CUDA counts the GPUs that {@code CUDA_VISIBLE_DEVICES}
 * leaves, and knows no others.
 */
public final class AcceleratorName {
  /** The variable that names the accelerator of those who name none. */
  public static final String VARIABLE = "GPUNVME_ACCELERATOR";

  private static final String ORDINAL = "gpu:";
  private static final Pattern NUMBER = Pattern.compile("\\d{1,4}");
  private static final Pattern UUID = Pattern.compile("(?i)(GPU|MIG)-[0-9a-f-]{1,36}");

  /** What a name is. */
  enum Kind {
    AUTO,
    CPU,
    /** Any GPU. */
    GPU,
    /** A certain GPU. */
    THIS_GPU
  }

  private final String text;
  private final Kind kind;
  private final Predicate<CudaDevice> means;

  private AcceleratorName(String text, Kind kind, Predicate<CudaDevice> means) {
    this.text = text;
    this.kind = kind;
    this.means = means;
  }

  /**
   * Reads a name; whether there is such a GPU is not looked up.
   *
   * @throws InvalidRequestException if it is none
   */
  public static AcceleratorName parse(String text) {
    String lower = text.toLowerCase(Locale.ROOT);
    return switch (lower) {
      case "auto" -> new AcceleratorName(lower, Kind.AUTO, _ -> false);
      case "cpu" -> new AcceleratorName(lower, Kind.CPU, _ -> false);
      case "gpu" -> new AcceleratorName(lower, Kind.GPU, d -> d.ordinal() == 0);
      default -> new AcceleratorName(text, Kind.THIS_GPU, certain(text, lower));
    };
  }

  private static Predicate<CudaDevice> certain(String text, String lower) {
    String number = lower.startsWith(ORDINAL) ? lower.substring(ORDINAL.length()) : "";
    if (NUMBER.matcher(number).matches()) {
      int ordinal = Integer.parseInt(number);
      return d -> d.ordinal() == ordinal;
    }
    if (UUID.matcher(text).matches()) {
      return d ->
          d.uuid().toLowerCase(Locale.ROOT).startsWith(lower)
              || d.gpuUuid().toLowerCase(Locale.ROOT).startsWith(lower);
    }
    return PciAddress.find(text)
        .<Predicate<CudaDevice>>map(
            address -> d -> PciAddress.find(d.pciBusId()).filter(address::equals).isPresent())
        .orElseThrow(
            () ->
                new InvalidRequestException(
                    "no accelerator '%s': must be auto, cpu, gpu, gpu:N, a PCI address or a UUID (nvidia-smi -L)"
                        .formatted(text)));
  }

  /** The name by number of a GPU: {@code gpu:1}. */
  public static String of(CudaDevice device) {
    return of(device.ordinal());
  }

  /** The name of the GPU that CUDA counts by this number, from 0. */
  public static String of(int ordinal) {
    return ORDINAL + ordinal;
  }

  Kind kind() {
    return kind;
  }

  /** Whether it means a GPU, any or a certain one. */
  boolean gpu() {
    return kind == Kind.GPU || kind == Kind.THIS_GPU;
  }

  /**
   * The GPU that it means.
   *
   * @throws InvalidRequestException if it means none of those that CUDA lists, or several
   */
  CudaDevice device(Cuda cuda) {
    List<CudaDevice> meant = cuda.devices().stream().filter(means).toList();
    if (meant.size() != 1) {
      throw new InvalidRequestException(
          "%s '%s'; CUDA lists %s (CUDA_VISIBLE_DEVICES decides which)"
              .formatted(
                  meant.isEmpty() ? "no GPU is" : meant.size() + " GPUs are",
                  text,
                  cuda.devices().stream()
                      .map(AcceleratorName::describe)
                      .collect(Collectors.joining("; "))));
    }
    return meant.getFirst();
  }

  private static String describe(CudaDevice device) {
    return "%s %s, %s, %s".formatted(of(device), device.name(), device.pciBusId(), device.uuid());
  }

  /** As it was given. */
  @Override
  public String toString() {
    return text;
  }
}
