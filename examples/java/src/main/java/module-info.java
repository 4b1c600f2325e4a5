/** A program that reads with gpunvme. */
module example {
  requires io.gpunvme.storage;
}
