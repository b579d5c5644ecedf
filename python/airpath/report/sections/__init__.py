"""The sections of the report, one module each with ``build(material) -> Section | None``."""
