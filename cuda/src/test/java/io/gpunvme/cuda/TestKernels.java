package io.gpunvme.cuda;

import static java.nio.charset.StandardCharsets.US_ASCII;

/** Device code of the GPU tests. */
final class TestKernels {
  /**
   * {@code xor_copy(to, from, count, mask)}: copies 32-bit words, each combined with the mask.
   * {@code wait_flag(words, nanoseconds)}: runs until words[0] is not 0 or the time is over, then
   * sets words[1] to 1 or 2.
   */
  private static final String PTX =
      """
      .version 7.0
      .target sm_75
      .address_size 64

      .visible .global .align 8 .u64 counter[3];

      .visible .entry xor_copy(
        .param .u64 to, .param .u64 from, .param .u32 count, .param .u32 mask)
      {
        .reg .pred %p1;
        .reg .b32 %r<8>;
        .reg .b64 %rd<6>;
        mov.u32 %r1, %ctaid.x;
        mov.u32 %r2, %ntid.x;
        mov.u32 %r3, %tid.x;
        mad.lo.u32 %r4, %r1, %r2, %r3;
        ld.param.u32 %r5, [count];
        setp.ge.u32 %p1, %r4, %r5;
        @%p1 bra done;
        ld.param.u64 %rd1, [to];
        ld.param.u64 %rd2, [from];
        ld.param.u32 %r6, [mask];
        mul.wide.u32 %rd3, %r4, 4;
        add.u64 %rd4, %rd1, %rd3;
        add.u64 %rd5, %rd2, %rd3;
        ld.global.u32 %r7, [%rd5];
        xor.b32 %r7, %r7, %r6;
        st.global.u32 [%rd4], %r7;
      done:
        ret;
      }

      .visible .entry wait_flag(.param .u64 words, .param .u64 nanoseconds)
      {
        .reg .pred %p<3>;
        .reg .b32 %r<3>;
        .reg .b64 %rd<6>;
        ld.param.u64 %rd1, [words];
        ld.param.u64 %rd2, [nanoseconds];
        mov.u64 %rd3, %globaltimer;
        mov.u32 %r2, 1;
      again:
        ld.relaxed.sys.global.u32 %r1, [%rd1];
        setp.ne.u32 %p1, %r1, 0;
        @%p1 bra seen;
        mov.u64 %rd4, %globaltimer;
        sub.u64 %rd5, %rd4, %rd3;
        setp.lt.u64 %p2, %rd5, %rd2;
        @%p2 bra again;
        mov.u32 %r2, 2;
      seen:
        st.release.sys.global.u32 [%rd1+4], %r2;
        ret;
      }
      """;

  private TestKernels() {}

  static byte[] image() {
    return PTX.getBytes(US_ASCII);
  }

  /** The device code as text. */
  static String text() {
    return PTX;
  }
}
