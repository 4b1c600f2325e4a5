/** The gpunvme command. */
module io.gpunvme.cli {
  requires static org.jspecify;
  requires io.gpunvme.core;
  requires io.gpunvme.ffi;
  requires com.google.gson;
  requires info.picocli;
  requires me.tongfei.progressbar;

  opens io.gpunvme.cli to
      info.picocli;
}
