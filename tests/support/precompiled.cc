// The program whose precompiled headers all tests use; it does nothing.
int main() { return 0; }
