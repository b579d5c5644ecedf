//! The binary; everything is in the library beside it.

fn main() {
    airpath_sleep_study::main()
}
