package io.gpunvme.gpu.device;

import java.util.Collections;
import java.util.EnumMap;
import java.util.Locale;
import java.util.Map;

/**
 * How a controller gets memory of a GPU: the one way that its address names, and the reasons
 * against the others. If that way fails, nothing falls back to another. Immutable.
 *
 * @param way the way
 * @param reasons why not, for each other way
 */
public record GpuBusAddresses(Way way, Map<Way, String> reasons) {
  /** A way. */
  public enum Way {
    /** An embedded controller has no bus: CUDA copies for it. */
    COPIES("CUDA copies for the embedded controller"),
    /** The kernel module imports the GPU driver's dma-buf. */
    DMA_BUF("a dma-buf of the GPU's driver, which the kernel maps for the controller"),
    /** The memory is searched behind the GPU's static BAR 1, and that part of the BAR is mapped. */
    STATIC_BAR("the GPU's static BAR, in which gpunvme searches each buffer"),
    /** No way: the controller does not get GPU memory. */
    NONE("none; queues and data stay in host memory");

    private final String text;

    Way(String text) {
      this.text = text;
    }

    /** In words. */
    public String text() {
      return text;
    }

    /** As it is printed: {@code static-bar}. */
    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }
  }

  /** Copies the reasons. */
  public GpuBusAddresses {
    Map<Way, String> own = new EnumMap<>(Way.class);
    own.putAll(reasons);
    reasons = Collections.unmodifiableMap(own);
  }

  /** The way that an address names. */
  public static GpuBusAddresses of(DeviceAddress address) {
    if (address.isEmbedded()) {
      String noBus = "an embedded controller is not on a bus";
      return new GpuBusAddresses(Way.COPIES, Map.of(Way.DMA_BUF, noBus, Way.STATIC_BAR, noBus));
    }
    if (address.transport() == Transport.VFIO_USER) {
      String other = "a controller in another process gets host memory only";
      return new GpuBusAddresses(
          Way.NONE, Map.of(Way.COPIES, other, Way.DMA_BUF, other, Way.STATIC_BAR, other));
    }
    String real = "CUDA copies data only for an embedded controller";
    if (address.transport() == Transport.KMOD) {
      String noBars =
          "the kernel module maps no BARs: use %s:%s,%s=GPU"
              .formatted(Transport.VFIO, address.place(), Transport.GPU_BAR);
      return new GpuBusAddresses(Way.DMA_BUF, Map.of(Way.COPIES, real, Way.STATIC_BAR, noBars));
    }
    String noImport =
        "%s: imports no dma-buf: use %s:%s"
            .formatted(address.transport(), Transport.KMOD, address.place());
    if (address.has(Transport.GPU_BAR)) {
      return new GpuBusAddresses(Way.STATIC_BAR, Map.of(Way.COPIES, real, Way.DMA_BUF, noImport));
    }
    String noBar =
        "no GPU is named: for one with all its memory behind a static BAR 1, use %s:%s,%s=GPU"
            .formatted(address.transport(), address.place(), Transport.GPU_BAR);
    return new GpuBusAddresses(
        Way.NONE, Map.of(Way.COPIES, real, Way.DMA_BUF, noImport, Way.STATIC_BAR, noBar));
  }

  /** The way, and the reasons against the others. */
  @Override
  public String toString() {
    StringBuilder text = new StringBuilder(way.text());
    reasons.forEach((other, reason) -> text.append("%n  not %s: %s".formatted(other, reason)));
    return text.toString();
  }
}
