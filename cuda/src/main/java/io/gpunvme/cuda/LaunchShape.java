package io.gpunvme.cuda;

/**
 * The numbers of blocks and threads of a launch, and its shared memory.
 *
 * @param gridX blocks, 1 to 2^31 - 1
 * @param gridY blocks, 1 to 65535
 * @param gridZ blocks, 1 to 65535
 * @param blockX threads of a block, 1 to 1024 together
 * @param blockY threads of a block
 * @param blockZ threads of a block, 1 to 64
 * @param sharedBytes dynamic shared memory of a block, &gt;= 0; above 48 KiB only after {@link
 *     CudaFunction#allowDynamicShared}
 */
public record LaunchShape(
    int gridX, int gridY, int gridZ, int blockX, int blockY, int blockZ, int sharedBytes) {
  private static final int MAX_GRID_YZ = 65535;
  private static final int MAX_BLOCK = 1024;
  private static final int MAX_BLOCK_Z = 64;

  /** Checks the ranges that hold on every GPU. */
  public LaunchShape {
    boolean grid = gridX > 0 && in(gridY, MAX_GRID_YZ) && in(gridZ, MAX_GRID_YZ);
    boolean block =
        in(blockX, MAX_BLOCK)
            && in(blockY, MAX_BLOCK)
            && in(blockZ, MAX_BLOCK_Z)
            && (long) blockX * blockY * blockZ <= MAX_BLOCK;
    if (!grid || !block || sharedBytes < 0) {
      throw new IllegalArgumentException(
          "no launch can have "
              + describe(gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes)
              + ": a grid has 1 to 2^31-1, 65535, 65535 blocks, a block 1 to 1024 threads");
    }
  }

  private static boolean in(int value, int max) {
    return value > 0 && value <= max;
  }

  /** A one-dimensional launch without dynamic shared memory. */
  public static LaunchShape of(int blocks, int threadsPerBlock) {
    return new LaunchShape(blocks, 1, 1, threadsPerBlock, 1, 1, 0);
  }

  /** The same with {@code bytes} of dynamic shared memory for each block. */
  public LaunchShape withShared(int bytes) {
    return new LaunchShape(gridX, gridY, gridZ, blockX, blockY, blockZ, bytes);
  }

  private static String describe(int gx, int gy, int gz, int bx, int by, int bz, int shared) {
    return gx
        + "x"
        + gy
        + "x"
        + gz
        + " blocks of "
        + bx
        + "x"
        + by
        + "x"
        + bz
        + " threads with "
        + shared
        + " bytes of shared memory";
  }

  @Override
  public String toString() {
    return describe(gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes);
  }
}
