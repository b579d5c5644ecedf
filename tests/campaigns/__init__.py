"""Campaigns: what tests try for seconds, tried for as long as somebody asks for."""
