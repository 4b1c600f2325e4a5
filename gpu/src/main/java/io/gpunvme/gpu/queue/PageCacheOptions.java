package io.gpunvme.gpu.queue;

import io.gpunvme.base.InvalidRequestException;
import java.time.Duration;

/**
 * A {@link PageCache}.
 *
 * @param bytes of pages in memory: rounded down to sets of 16 pages, of which there is at least one
 * @param pageBytes of a page, a power of two from 512 to 64 KiB: what one miss reads. A large one
 *     suits what is read in order, a small one what is read here and there
 * @param timeout how long a page waits for a frame while others hold all in which it may be, above
 *     0 and at most an hour
 * @param counting whether acquires are counted: it costs a little of the rate of hits
 * @param verifying whether each page that arrives is compared with what it was before: see {@link
 *     #withVerify}
 * @param hostTierBytes of pages in pinned host memory, for those that leave the cache and are
 *     missed often: rounded down to sets of 16 pages; 0: none. See {@link #withHostTier}
 */
public record PageCacheOptions(
    long bytes,
    int pageBytes,
    Duration timeout,
    boolean counting,
    boolean verifying,
    long hostTierBytes) {
  private static final int SMALLEST = 512;
  private static final int LARGEST = 64 << 10;
  private static final int PAGE = 4096;
  private static final Duration LONGEST = Duration.ofHours(1);

  /** Frames have a number of 32 bits, counted by sets. */
  private static final long MOST_FRAMES = 1L << 31;

  /** Checks. */
  public PageCacheOptions {
    if (pageBytes < SMALLEST || pageBytes > LARGEST || Integer.bitCount(pageBytes) != 1) {
      throw new InvalidRequestException(
          "pages of %d bytes: a power of two from %d to %d is wanted"
              .formatted(pageBytes, SMALLEST, LARGEST));
    }
    long set = (long) pageBytes * DeviceLayout.Cache.WAYS;
    if (bytes < set || bytes / pageBytes >= MOST_FRAMES) {
      throw new InvalidRequestException(
          "a cache of %d bytes: with pages of %d bytes it has at least %d, and fewer than %d"
              .formatted(bytes, pageBytes, set, MOST_FRAMES * pageBytes));
    }
    if (hostTierBytes != 0 && (hostTierBytes < set || hostTierBytes / pageBytes >= MOST_FRAMES)) {
      throw new InvalidRequestException(
          "a host tier of %d bytes: 0 is none; with pages of %d bytes it has at least %d, and fewer than %d"
              .formatted(hostTierBytes, pageBytes, set, MOST_FRAMES * pageBytes));
    }
    if (timeout.isNegative() || timeout.isZero() || timeout.compareTo(LONGEST) > 0) {
      throw new InvalidRequestException(
          "a timeout of %s is not above 0 and at most %s".formatted(timeout, LONGEST));
    }
  }

  /**
   * Pages of 4 KiB, which wait 10 s for a frame; acquires are counted; no host tier, and not
   * verified.
   */
  public static PageCacheOptions of(long bytes) {
    return of(bytes, PAGE);
  }

  /** The same with other pages. */
  public static PageCacheOptions of(long bytes, int pageBytes) {
    return new PageCacheOptions(bytes, pageBytes, Duration.ofSeconds(10), true, false, 0);
  }

  /** The same with another time to wait for a frame. */
  public PageCacheOptions withTimeout(Duration atMost) {
    return new PageCacheOptions(bytes, pageBytes, atMost, counting, verifying, hostTierBytes);
  }

  /** The same without counting acquires. */
  public PageCacheOptions withoutCounting() {
    return new PageCacheOptions(bytes, pageBytes, timeout, false, verifying, hostTierBytes);
  }

  /**
   * The same with pinned host memory between the cache and the SSDs. A page that makes room in the
   * cache is kept there if it was missed several times of late, and more often than the one that it
   * would replace: what is read once pushes nothing out. Pages of a file with a writable array are
   * never there ({@link PageCache#array}). It takes 24 to 40 bytes of GPU memory a page. With
   * {@link Placement#HOST} the cache is in host memory itself, and a larger cache does the same
   * better.
   *
   * @param tierBytes 0, or at least 16 pages
   */
  public PageCacheOptions withHostTier(long tierBytes) {
    return new PageCacheOptions(bytes, pageBytes, timeout, counting, verifying, tierBytes);
  }

  /**
   * The same for finding corrupt data: the CRC-32C of each page is recorded when it is read for the
   * first time, and when it is written, and each later arrival from the SSD or the host tier is
   * compared with it. A page that differs ends in {@link DeviceStatus#CORRUPT}, is counted, and is
   * read again by whoever wants it next. It is slow, and takes 4 bytes of GPU memory for each page
   * of each file of which there are arrays. What was read for the first time is taken as right, if
   * {@link PageCache#expect} has not said what it must be; what others write is taken as corrupt.
   */
  public PageCacheOptions withVerify() {
    return new PageCacheOptions(bytes, pageBytes, timeout, counting, true, hostTierBytes);
  }
}
