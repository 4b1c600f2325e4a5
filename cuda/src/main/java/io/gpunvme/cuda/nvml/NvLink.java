package io.gpunvme.cuda.nvml;

/**
 * An active NVLink of a GPU.
 *
 * @param gpu its PCI address as NVML writes it, {@code 00000000:01:00.0}
 * @param number of the link, from 0
 * @param version of NVLink as NVML numbers them (1: 1.0, 2: 2.0, 3: 2.2, 4: 3.0, 5: 3.1, 6: 4.0, 7:
 *     5.0); 0 if it does not say
 * @param end what is at the other end
 * @param remote the PCI address of that; empty if NVML does not say
 */
public record NvLink(String gpu, int number, int version, End end, String remote) {
  /** What a link leads to. */
  public enum End {
    /** Another GPU. */
    GPU,
    /** An NVSwitch, which connects all GPUs at it. */
    SWITCH,
    /** Something else, or not known. */
    OTHER;

    static End of(int type) {
      return switch (type) {
        case 0 -> GPU;
        case 2 -> SWITCH;
        default -> OTHER;
      };
    }
  }

  /**
   * GB/s in one direction, by NVIDIA's figures for the version: half of what is told for both
   * directions of a link (P100 40 GB/s, V100 to H100 50, B100 100). 0 if the version is not known.
   */
  public double gigabytesPerSecond() {
    return switch (version) {
      case 1 -> 20;
      case 2, 3, 4, 5, 6 -> 25;
      case 7 -> 50;
      default -> 0;
    };
  }
}
